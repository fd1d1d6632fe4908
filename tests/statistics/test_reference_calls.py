"""Recommended calls: Holm, intervals that agree with the call, rows that are not tested, and calls in doubt."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from gapfloor.errors import UsageError
from gapfloor.statistics.reference_calls import (
    call_reference_family,
    compare_strata_to_reference,
    compare_to_reference,
    holm_divisors,
)
from gapfloor.statistics.skewness import (
    EXPONENTIAL_SKEWNESS,
    exponential_skewness,
    family_skewness,
    null_variance,
    sample_skewness,
)

pytestmark = pytest.mark.fast


def family(rng, *, n=6, deltas=(0.0, 0.3, 0.8, 1.5, 4.0), sd=1.0):
    floors = [rng.standard_normal(384) * 2 for _ in deltas]
    return [
        compare_to_reference(delta + sd * rng.standard_normal(n), floor)
        for delta, floor in zip(deltas, floors, strict=True)
    ]


def test_a_floor_without_error_gives_students_test():
    runs = [1.2, 0.4, 2.2, 0.9, 1.7, -0.3]
    found = compare_to_reference(runs, np.full(384, 0.25))
    assert found.p == pytest.approx(stats.ttest_1samp(runs, 0.25).pvalue, rel=1e-12)


def test_p_lies_between_welchs_extremes():
    rng = np.random.default_rng(3)
    for _ in range(20):
        runs, floor = 1 + rng.standard_normal(4), rng.standard_normal(384) * 6
        found = compare_to_reference(runs, floor)
        t = found.delta / found.se
        assert 2 * stats.t.sf(abs(t), 383) <= found.p <= 2 * stats.t.sf(abs(t), 3)


def test_holm_p_are_statsmodels():
    tests = family(np.random.default_rng(0))
    calls = call_reference_family(tests)
    expected = multipletests([test.p for test in tests], method="holm")[1]
    assert [call.p_holm for call in calls] == pytest.approx(expected)
    tost = multipletests([test.p_tost for test in tests], method="holm")[1]
    assert [call.p_tost_holm for call in calls] == pytest.approx(tost)


def test_the_interval_excludes_zero_exactly_when_a_call_is_made():
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(150):
        for call in call_reference_family(family(rng)):
            low, high = call.interval
            assert (low > 0 or high < 0) == (call.call in ("above", "below"))
            assert (call.p_holm < 0.05) == (call.call in ("above", "below"))
            assert call.confidence == pytest.approx(1 - 0.05 / call.divisor)
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
    calls = call_reference_family(tests)
    assert [call.label for call in calls] == ["not tested (1 run)", "not tested (2 runs)", "above", "above"]
    assert calls[3].family_size == 2
    assert math.isnan(calls[0].interval[0])


def test_the_least_number_of_runs_is_a_choice_of_the_plan():
    floor = np.random.default_rng(0).standard_normal(384)
    assert not math.isnan(compare_to_reference([3.0, 3.1], floor, least_runs=2).p)
    with pytest.raises(UsageError, match="at least 2"):
        compare_to_reference([3.0, 3.1], floor, least_runs=1)


def test_the_order_of_runs_and_games_does_not_matter():
    tests = family(np.random.default_rng(5))
    calls = call_reference_family(tests)
    again = call_reference_family(tests[::-1])[::-1]
    assert calls == again
    runs, floor = np.array([3.0, 1.0, 2.0, 5.0]), np.arange(20.0)
    assert compare_to_reference(runs, floor) == compare_to_reference(runs[::-1], floor[::-1])


def test_the_same_seed_gives_the_same_calls_and_another_seed_others():
    first, again, other = (call_reference_family(family(np.random.default_rng(s))) for s in (7, 7, 8))
    assert first == again
    assert first != other


@pytest.mark.parametrize("n", [3, 6, 12])
def test_the_family_wise_error_is_kept_for_normal_runs(n):
    rng = np.random.default_rng(n)
    wrong = [
        any(c.call in ("above", "below") for c in call_reference_family(family(rng, n=n, deltas=(0.0,) * 8)))
        for _ in range(120)
    ]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 120)


def test_runs_at_the_floor_are_equivalent_and_the_family_wise_version_is_stricter():
    rng = np.random.default_rng(0)
    tests = [
        compare_to_reference(3.0 + 0.05 * rng.standard_normal(6), 3 + 0.5 * rng.standard_normal(384))
        for _ in range(4)
    ]
    calls = call_reference_family(tests)
    assert {call.call for call in calls} == {"equivalent"}
    for call in calls:
        assert call.p_tost_holm >= call.test.p_tost
        assert call.equivalent_in_family == (call.p_tost_holm < 0.05)


def test_one_stratum_is_the_pooled_comparison_and_strata_take_out_what_agents_differ_by():
    rng = np.random.default_rng(0)
    floor, first, second = rng.standard_normal(384), 3 + rng.standard_normal(4), 9 + rng.standard_normal(5)
    alone, pooled = compare_strata_to_reference([first], floor), compare_to_reference(first, floor)
    assert (alone.delta, alone.se, alone.p) == pytest.approx((pooled.delta, pooled.se, pooled.p))
    both = compare_strata_to_reference([first, second], floor)
    expected = (4 / 9) ** 2 * first.var(ddof=1) / 4 + (5 / 9) ** 2 * second.var(ddof=1) / 5
    assert both.se**2 == pytest.approx(expected + floor.var(ddof=1) / 384)
    assert both.p < compare_to_reference([*first, *second], floor).p
    assert math.isnan(compare_strata_to_reference([first, second[:2]], floor).p)
    with pytest.raises(UsageError, match="at least one agent"):
        compare_strata_to_reference([], floor)


def test_runs_that_do_not_differ_put_a_call_in_doubt():
    rng = np.random.default_rng(0)
    (call,) = call_reference_family([compare_to_reference([0.0] * 3, 3 + rng.standard_normal(384))])
    assert (call.call, call.doubt) == ("below", "runs do not differ")


def test_skewness_is_scipys_and_the_table_is_what_its_call_gives():
    values = np.random.default_rng(0).exponential(size=(5, 7))
    assert sample_skewness(values) == pytest.approx(stats.skew(values, axis=1))
    for n in (3, 6, 12):
        simulated = stats.skew(np.random.default_rng(1).exponential(size=(40_000, n)), axis=1).mean()
        assert EXPONENTIAL_SKEWNESS[n] == pytest.approx(simulated, abs=0.02)
    assert exponential_skewness(6) < exponential_skewness(7) < exponential_skewness(8)
    normal = stats.skew(np.random.default_rng(1).standard_normal((40_000, 6)), axis=1)
    assert null_variance(6) == pytest.approx(normal.var(), rel=0.03)


EVEN = np.arange(12.0)


def test_right_skewed_families_doubt_below_and_not_above():
    rng = np.random.default_rng(0)
    skewed = family_skewness([rng.lognormal(size=12) for _ in range(8)])
    symmetric = family_skewness([EVEN] * 8)
    assert skewed.doubts(-1.0, EVEN)
    assert not skewed.doubts(1.0, EVEN)
    assert not symmetric.doubts(-1.0, EVEN)
    assert not symmetric.doubts(1.0, EVEN)
    assert family_skewness([-rng.lognormal(size=12) for _ in range(8)]).doubts(1.0, EVEN)


def test_one_skewed_game_in_a_symmetric_family_is_in_doubt_alone():
    symmetric = family_skewness([EVEN] * 7 + [EVEN**4])
    assert symmetric.doubts(-1.0, EVEN**4)
    assert not symmetric.doubts(-1.0, EVEN)


def test_a_family_that_says_nothing_about_its_shape_doubts_below():
    assert family_skewness([[1.0, 2.0]]).doubts(-1.0, [1.0, 2.0])
    assert not family_skewness([[1.0, 2.0]]).doubts(1.0, [1.0, 2.0])


def test_most_false_below_calls_of_skewed_runs_are_in_doubt():
    rng = np.random.default_rng(4)
    below = doubted = 0
    for _ in range(100):
        tests = [
            compare_to_reference(rng.lognormal(size=6) - math.exp(0.5), rng.standard_normal(384))
            for _ in range(8)
        ]
        calls = [call for call in call_reference_family(tests) if call.call == "below"]
        below += len(calls)
        doubted += sum(call.doubt == "skewed run values" for call in calls)
    assert below > 15
    assert doubted / below > 0.85
