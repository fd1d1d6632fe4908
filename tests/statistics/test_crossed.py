"""Two agents on shared levels: the standard error against what really happens, and what would settle a difference."""

import numpy as np
import pytest
from scipy import stats

from gapfloor.statistics.level_crossing import crossed_difference
from gapfloor.statistics.power import runs_to_settle

pytestmark = pytest.mark.fast


def simulate(
    rng, *, n_a=3, n_b=4, levels=40, run_sd=1.0, level_sd=2.0, own_sd=1.0, noise=1.0, difference=0.0
):
    """Runs of two agents on shared levels: a common level effect, one of each agent's own, runs and noise."""
    shared = rng.normal(0, level_sd, levels)
    seeds = np.arange(levels)
    sides = []
    for n, mean in ((n_a, difference), (n_b, 0.0)):
        own = rng.normal(0, own_sd, levels)
        sides.append(
            [
                (mean + shared + own + rng.normal(0, run_sd) + rng.normal(0, noise, levels), seeds)
                for _ in range(n)
            ]
        )
    return sides


def test_the_standard_error_is_what_new_runs_on_new_levels_vary_by():
    rng = np.random.default_rng(0)
    found = [crossed_difference([(1.0, *simulate(rng))]) for _ in range(800)]
    real = np.std([each.new_runs.value for each in found])
    # Of 800 repetitions the sd is known to 2.5%; the floors of the estimator push it up a little.
    assert np.sqrt(np.mean([each.new_runs.se**2 for each in found])) == pytest.approx(real, rel=0.06)


def test_a_true_null_is_rejected_about_as_often_as_it_should():
    rng = np.random.default_rng(1)
    p = np.array([crossed_difference([(1.0, *simulate(rng, n_a=4, n_b=4))]).new_runs.p for _ in range(800)])
    assert 0.025 < np.mean(p < 0.05) < 0.08


def test_single_runs_give_the_paired_t_test_over_levels():
    rng = np.random.default_rng(2)
    a, b = simulate(rng, n_a=1, n_b=1)
    found = crossed_difference([(1.0, a, b)])
    expected = stats.ttest_rel(a[0][0], b[0][0])
    assert found.these_runs.p == pytest.approx(expected.pvalue)
    assert found.these_runs.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert np.isnan([found.new_runs.se, found.new_runs.p, *found.new_runs.interval]).all()


def test_the_shared_part_of_levels_does_not_matter():
    easy, hard = (
        crossed_difference([(1.0, *simulate(np.random.default_rng(3), level_sd=sd))]) for sd in (0.0, 50.0)
    )
    assert hard.new_runs.se == pytest.approx(easy.new_runs.se)
    assert hard.new_runs.value == pytest.approx(easy.new_runs.value)


def test_a_gap_is_the_difference_of_two_level_sets():
    rng = np.random.default_rng(4)
    train, test = simulate(rng, difference=2.0), simulate(rng, levels=20)
    both = crossed_difference([(1.0, *train), (-1.0, *test)])
    halves = [crossed_difference([(1.0, *side)]) for side in (train, test)]
    assert both.new_runs.value == pytest.approx(halves[0].new_runs.value - halves[1].new_runs.value)
    assert both.n_levels == 60
    assert both.these_runs.se == pytest.approx(np.hypot(halves[0].these_runs.se, halves[1].these_runs.se))


def test_without_a_shared_level_there_is_no_comparison():
    a, b = [(np.ones(3), np.arange(3))], [(np.ones(3), np.arange(10, 13))]
    found = crossed_difference([(1.0, a, b)])
    assert found.n_levels == 0
    assert np.isnan([found.new_runs.value, found.these_runs.value]).all()


def test_the_runs_that_settle_a_difference_do_so():
    n = runs_to_settle(1.0, 2.0, 1.5, family_size=1)
    rng = np.random.default_rng(5)

    def power(size):
        a, b = rng.normal(1.5, 1, (4000, size)), rng.normal(0, 2, (4000, size))
        return np.mean(stats.ttest_ind(a, b, axis=1, equal_var=False).pvalue < 0.05)

    assert power(n) == pytest.approx(0.8, abs=0.04)
    assert power(n - 3) < 0.8
    assert runs_to_settle(1.0, 2.0, 1.5, family_size=8) > n


def test_nothing_settles_no_difference_or_an_unknown_spread():
    assert runs_to_settle(1.0, 1.0, 0.0, family_size=1) is None
    assert runs_to_settle(float("nan"), 1.0, 1.0, family_size=1) is None
