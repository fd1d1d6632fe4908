"""Recommended calls: Holm, intervals that agree with the call, rows that are not tested, and calls in doubt."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from gapfloor.errors import UsageError
from gapfloor.statistics.families import call_family, holm_divisors
from gapfloor.statistics.reference_calls import compare_to_reference

pytestmark = pytest.mark.fast


def family(rng, *, n=6, deltas=(0.0, 0.3, 0.8, 1.5, 4.0), sd=1.0):
    floors = [rng.standard_normal(384) * 2 for _ in deltas]
    return [
        compare_to_reference(delta + sd * rng.standard_normal(n), floor)
        for delta, floor in zip(deltas, floors, strict=True)
    ]


def test_a_floor_with_hardly_any_error_gives_students_test():
    runs = [1.2, 0.4, 2.2, 0.9, 1.7, -0.3]
    found = compare_to_reference(runs, 0.25 + 1e-4 * np.random.default_rng(0).standard_normal(100_000))
    assert found.p == pytest.approx(stats.ttest_1samp(runs, 0.25).pvalue, rel=1e-3)


def test_holm_p_are_statsmodels():
    tests = family(np.random.default_rng(0))
    calls = call_family(tests)
    expected = multipletests([call.test.p for call in calls], method="holm")[1]
    assert [call.p_holm for call in calls] == pytest.approx(expected)
    tost = multipletests([call.test.p_tost for call in calls], method="holm")[1]
    assert [call.p_tost_holm for call in calls] == pytest.approx(tost)


def test_the_interval_excludes_zero_exactly_when_a_call_is_made():
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(150):
        for call in call_family(family(rng)):
            if call.call == "not tested":
                assert call.not_tested == call.test.doubt
                continue
            low, high = call.estimate.interval
            assert (low > 0 or high < 0) == (call.call in ("above", "below"))
            assert (call.p_holm < 0.05) == (call.call in ("above", "below"))
            assert call.estimate.confidence == pytest.approx(1 - 0.05 / call.divisor)
            seen.add((call.call, call.divisor))
    assert {divisor for _, divisor in seen} == {1, 2, 3, 4, 5}


def test_divisors_follow_holms_steps():
    # Sorted: .001 < .05/4, .015 < .05/3, .03 > .05/2: the procedure stops at divisor 2.
    assert holm_divisors([0.03, 0.001, 0.9, 0.015]).tolist() == [2, 4, 2, 3]
    assert holm_divisors([]).tolist() == []
    assert holm_divisors([float("nan"), 0.01]).tolist() == [0, 1]


def test_too_few_runs_are_not_tested_and_leave_the_family():
    rng = np.random.default_rng(2)
    floor = rng.standard_normal(384)
    tests = [
        compare_to_reference(np.full(n, 3.0) + rng.standard_normal(n) * 0.1, floor) for n in (1, 2, 3, 6)
    ]
    calls = call_family(tests)
    assert [call.not_tested or call.call for call in calls] == ["1 run", "2 runs", "above", "above"]
    assert calls[3].family_size == 2
    assert math.isnan(calls[0].estimate.interval[0])


def test_the_least_number_of_runs_is_a_choice_of_the_plan():
    floor = np.random.default_rng(0).standard_normal(384)
    assert not math.isnan(compare_to_reference([3.0, 3.1], floor, least_runs=2).p)
    with pytest.raises(UsageError, match="at least 2"):
        compare_to_reference([3.0, 3.1], floor, least_runs=1)


def test_the_order_of_runs_and_games_does_not_matter():
    tests = family(np.random.default_rng(5))
    calls = call_family(tests)
    again = call_family(tests[::-1])[::-1]
    assert calls == again
    runs, floor = np.array([3.0, 1.0, 2.0, 5.0]), np.arange(20.0)
    assert compare_to_reference(runs, floor) == compare_to_reference(runs[::-1], floor[::-1])


def test_the_same_seed_gives_the_same_calls_and_another_seed_others():
    first, again, other = (call_family(family(np.random.default_rng(s))) for s in (7, 7, 8))
    assert first == again
    assert first != other


@pytest.mark.parametrize("n", [3, 6, 12])
def test_the_family_wise_error_is_kept_for_normal_runs(n):
    rng = np.random.default_rng(n)
    wrong = [
        any(c.call in ("above", "below") for c in call_family(family(rng, n=n, deltas=(0.0,) * 8)))
        for _ in range(120)
    ]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 120)


def test_runs_at_the_floor_are_equivalent_and_the_family_wise_version_is_stricter():
    rng = np.random.default_rng(0)
    tests = [
        compare_to_reference(3.0 + 0.05 * rng.standard_normal(6), 3 + 0.5 * rng.standard_normal(384))
        for _ in range(4)
    ]
    calls = call_family(tests)
    assert {call.call for call in calls} == {"equivalent"}
    for call in calls:
        assert call.p_tost_holm >= call.test.p_tost
        assert call.is_equivalent_in_family == (call.p_tost_holm < 0.05)


def one(runs, floor, **options):
    (call,) = call_family([compare_to_reference(runs, floor, **options)])
    return call


def test_runs_that_do_not_differ_are_never_called_below():
    floor = 3 + 0.05 * np.random.default_rng(0).standard_normal(384)
    assert one([0.0] * 3, floor).not_tested == "the runs do not differ"


def test_runs_that_do_not_differ_are_above_a_floor_that_is_far_from_them():
    """Three runs at 500: another run at the lowest return seen would have to weigh (20 / 491) of all runs."""
    floor = np.tile([9.0, 20.0, 31.0], 40)
    call = one([500.0] * 3, floor, seen=(500.0, 500.0))
    assert (call.call, call.estimate.interval[1]) == ("above", pytest.approx(500 - floor.mean(), abs=3))
    assert 1 < call.test.p / (2 * (11 / 491) ** 3) < 5
    assert one([40.0] * 3, floor, seen=(40.0, 40.0)).call == "not distinguishable"


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e7 + 0.1, 0.0])
@pytest.mark.parametrize("sizes", [(384, 100), (7, 384), (1000, 51)])
def test_returns_that_do_not_differ_give_no_call(value, sizes):
    runs = [np.full(sizes[0], value).mean() + shift for shift in (0.0, 1e-17 * value, -1e-17 * value)]
    call = one(runs, np.full(sizes[1], value), seen=(value, value))
    assert call.not_tested == "no return differs from another"


def test_small_floors_are_refused_with_the_number_that_would_do():
    assert one([5.0, 6.0, 7.0], [0.0] * 8).not_tested == "the floor has 8 episodes, and 50 are needed"


def test_a_silent_floor_needs_to_know_what_an_episode_can_return():
    runs = [0.02, 0.03, 0.01, 0.02, 0.04, 0.02]
    assert one(runs, [0.0] * 384).call == "not tested"
    assert one(runs, [0.0] * 384, seen=(0.0, 1.0)).call == "above"
    assert one(runs, [0.0] * 60, seen=(0.0, 1.0)).call != "above"


def test_skewed_runs_are_not_called_below():
    rng = np.random.default_rng(4)
    below = withheld = 0
    for _ in range(60):
        tests = [
            compare_to_reference(rng.lognormal(size=6) - math.exp(0.5), rng.standard_normal(384))
            for _ in range(8)
        ]
        calls = call_family(tests)
        below += sum(call.call == "below" for call in calls)
        withheld += sum(call.not_tested == "the runs may be right-skewed" for call in calls)
    assert below <= 3
    assert withheld > 5
