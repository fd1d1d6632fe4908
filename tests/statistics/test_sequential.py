"""Group-sequential looks: published boundaries, a valid p at every look, and what to train next."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gapfloor.errors import UsageError
from gapfloor.statistics.looks import next_runs
from gapfloor.statistics.sequential import (
    nominal_levels,
    sequential_p,
    spent_alpha,
)

pytestmark = pytest.mark.fast

LOOKS = (3, 6, 9, 12, 15)


def test_boundaries_are_the_published_ones():
    """R, ldbounds 2.0: ldBounds(t = seq(.2, 1, .2), iuse = c(1, 1), alpha = c(.025, .025))$upper.bounds."""
    found = [stats.norm.isf(level / 2) for level in nominal_levels(LOOKS)]
    assert found == pytest.approx([4.8769, 3.3569, 2.6803, 2.2898, 2.0310], abs=2e-4)


def test_two_looks_agree_with_the_bivariate_normal():
    first, second = (stats.norm.isf(level / 2) for level in nominal_levels((6, 12)))
    both = stats.multivariate_normal([0, 0], [[1, math.sqrt(0.5)], [math.sqrt(0.5), 1]])
    stays = sum(
        sign * both.cdf(np.array(corner))
        for sign, corner in (
            (1, (first, second)), (-1, (-first, second)), (-1, (first, -second)), (1, (-first, -second))
        )
    )  # fmt: skip
    assert 1 - stays == pytest.approx(0.05, abs=1e-5)


def test_one_look_is_the_ordinary_test():
    assert nominal_levels((12,)) == pytest.approx((0.05,))
    assert sequential_p([0.0123], (12,)) == pytest.approx(0.0123, rel=1e-4)


def test_everything_is_spent_at_the_last_look():
    assert spent_alpha(1.0, alpha=0.01) == pytest.approx(0.01)
    assert (np.diff(spent_alpha([0.1, 0.5, 0.9])) > 0).all()


def test_the_levels_grow_with_alpha_and_their_sum_bounds_it():
    small, large = nominal_levels(LOOKS, alpha=0.01), nominal_levels(LOOKS, alpha=0.05)
    assert all(a < b for a, b in zip(small, large, strict=True))
    assert large[-1] < 0.05 < sum(large)


def test_the_sequential_p_says_when_a_look_rejects():
    p = [0.2, 0.004, 0.001]
    found = sequential_p(p, LOOKS)
    for alpha in (found * 0.98, found * 1.02):
        rejected = any(a < b for a, b in zip(p, nominal_levels(LOOKS, alpha=alpha), strict=False))
        assert rejected == (alpha > found)
    assert sequential_p([0.99], LOOKS) == 1.0
    assert math.isnan(sequential_p([], LOOKS))


def test_the_family_wise_error_over_looks_is_kept_and_looking_each_time_is_not():
    """Student's p of eight games with normal runs; 4,000 families."""
    rng = np.random.default_rng(1)
    runs = rng.standard_normal((4000, 8, 15))
    p = np.stack(
        [stats.ttest_1samp(runs[..., :n], 0.0, axis=-1).pvalue for n in LOOKS],
        axis=-1,
    )
    called = p < nominal_levels(LOOKS, alpha=0.05 / 8)
    assert called.any(axis=(1, 2)).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4000)
    assert (p.min(axis=(1, 2)) < 0.05 / 8).mean() > 0.12


def games(rng, n=(6, 6, 15, 2, 7), deltas=(9.0, 0.1, 0.0, 5.0, 0.2)):
    floors = [rng.standard_normal(384) for _ in n]
    runs = [delta + rng.standard_normal(size) for delta, size in zip(deltas, n, strict=True)]
    return runs, floors


def test_next_says_stop_continue_and_how_many_runs():
    runs, floors = games(np.random.default_rng(0))
    found = next_runs(runs, floors, looks=LOOKS)
    assert [d.advice for d in found] == [
        "stop: called", "continue", "stop: all looks used", "continue", "continue"
    ]  # fmt: skip
    assert [d.more_runs for d in found] == [0, 3, 0, 1, 2]
    assert [d.call for d in found[:4]] == [
        "above",
        "not distinguishable",
        "not distinguishable",
        "not tested",
    ]


def test_the_repeated_interval_excludes_zero_exactly_when_a_call_is_made():
    rng = np.random.default_rng(2)
    seen = set()
    for _ in range(10):
        runs, floors = games(rng, n=(9,) * 4, deltas=(0.0, 1.0, 2.0, 4.0))
        for decision in next_runs(runs, floors, looks=LOOKS):
            low, high = decision.found.interval
            made = decision.call in ("above", "below")
            assert (low > 0 or high < 0) == made
            assert (decision.found.p_holm < 0.05) == made
            seen.add(made)
    assert seen == {True, False}


def test_a_below_call_on_skewed_runs_waits_for_the_next_look():
    rng = np.random.default_rng(0)
    floors = [rng.standard_normal(384) for _ in range(4)]
    skewed = next_runs([rng.lognormal(size=9) - 20 for _ in floors], floors, looks=LOOKS)
    waiting = [decision for decision in skewed if decision.call == "not tested"]
    assert {decision.found.not_tested for decision in waiting} == {"the runs may be right-skewed"}
    assert {decision.advice for decision in waiting} == {"continue"}
    even = next_runs([np.tile([0.0, 1.0, 2.0], 5) - 40 for _ in floors], floors, looks=LOOKS)
    assert {decision.call for decision in even} == {"below"}


def test_rare_successes_give_no_false_calls_at_looks():
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(40):
        runs = rng.binomial(384, 0.005, (8, 15)) / 384
        floors = (rng.random((8, 384)) < 0.005).astype(float)
        found = next_runs(runs, floors, looks=LOOKS, seen=[(0.0, 1.0)] * 8)
        wrong += any(decision.call in ("above", "below") for decision in found)
    assert wrong <= 2


def test_runs_between_two_looks_wait_and_runs_after_the_last_are_not_used():
    runs, floors = games(np.random.default_rng(3), n=(6,) * 2, deltas=(0.3, 0.3))
    before = next_runs(runs, floors, looks=LOOKS)
    more = next_runs([np.append(one, [50.0, 60.0]) for one in runs], floors, looks=LOOKS)
    assert [d.found.test.run_values for d in more] == [d.found.test.run_values for d in before]
    assert [d.more_runs for d in more] == [1, 1]
    late = next_runs([np.append(one, [50.0, 60.0]) for one in runs], floors, looks=(3, 6))
    assert [d.n_used for d in late] == [6, 6]
    assert [d.more_runs for d in late] == [0, 0]


def test_the_order_of_games_does_not_matter_and_the_same_seed_gives_the_same():
    runs, floors = games(np.random.default_rng(4))
    found = next_runs(runs, floors, looks=LOOKS)
    assert next_runs(runs[::-1], floors[::-1], looks=LOOKS)[::-1] == found
    again, other = (games(np.random.default_rng(s)) for s in (4, 5))
    assert next_runs(*again, looks=LOOKS) == found
    assert next_runs(*other, looks=LOOKS) != found


@pytest.mark.parametrize("looks", [(), (6, 6), (6, 3), (1, 2)])
def test_looks_must_ascend(looks):
    with pytest.raises(UsageError, match="ascending"):
        nominal_levels(looks)


def test_the_first_look_needs_three_runs():
    with pytest.raises(UsageError, match="at least 3 runs"):
        next_runs([[1.0, 2.0]], [[0.0, 1.0]], looks=(2, 4))
