"""Limits that are moved outwards for skewed run values: Johnson's t, agreement of interval and p, and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gapfloor.statistics.components import VariancePart, components_interval, components_p
from gapfloor.statistics.reference_calls import call_reference_family, compare_to_reference
from gapfloor.statistics.skewed_limits import (
    WidenedLimits,
    limits,
    limits_p,
    limits_tost,
    skewed_reach,
    widened_limits,
)
from gapfloor.statistics.skewness import adjusted_skewness, family_skewness

pytestmark = pytest.mark.fast

RUNS, FLOOR = VariancePart(0.36, 5), VariancePart(0.04, 383)
PARTS = (RUNS, FLOOR)
UPPER = WidenedLimits(upper=0.8)
EVEN = np.arange(6.0)


def johnson(mean, variance, third, n, mu):
    """Johnson's modified t (1978, equation 2.7) of a sample with these moments about the true mean mu."""
    shift = third / (6 * variance * n) + third / (3 * variance**2) * (mean - mu) ** 2
    return (mean - mu + shift) / math.sqrt(variance / n)


@pytest.mark.parametrize(("skewness", "tolerance"), [(0.0, 1e-12), (0.01, 1e-3), (0.05, 2e-2)])
def test_the_widened_limit_is_johnsons_to_first_order(skewness, tolerance):
    n, variance = 6, 2.0
    distance = float(skewed_reach([variance / n, 0.0], df=n - 1, n=n, skewness=skewness, alpha=0.05))
    t = johnson(0.0, variance, skewness * variance**1.5, n, distance)
    assert t == pytest.approx(-stats.t.isf(0.025, n - 1), abs=tolerance)


def test_the_correction_at_most_doubles_the_half_width():
    for alpha in (0.5, 0.05, 1e-8):
        student = float(skewed_reach([0.2, 0.01], df=2, n=3, skewness=0.0, alpha=alpha))
        found = float(skewed_reach([0.2, 0.01], df=2, n=3, skewness=1.7, alpha=alpha))
        assert student < found <= 2 * student
        parts = (VariancePart(0.2, 2), VariancePart(0.01, 383))
        widened = WidenedLimits(upper=1.7)
        assert limits_p(-found, parts, widened, n=3) == pytest.approx(alpha, rel=1e-6)


def test_the_skewness_is_scipys():
    values = np.random.default_rng(0).exponential(size=(5, 7))
    assert adjusted_skewness(values) == pytest.approx(stats.skew(values, axis=1, bias=False))
    assert family_skewness(values).adjusted == pytest.approx(stats.skew(values, axis=1, bias=False).mean())


def test_without_skew_nothing_is_widened():
    assert limits(1.0, PARTS, WidenedLimits(), n=6, alpha=0.05) == components_interval(1.0, PARTS, alpha=0.05)
    assert limits_p(1.0, PARTS, WidenedLimits(), n=6) == components_p(1.0, PARTS)
    symmetric = family_skewness([EVEN] * 8)
    assert widened_limits(symmetric, EVEN) == WidenedLimits()


def test_only_the_limit_of_the_long_tail_moves_and_only_outwards():
    plain = components_interval(-1.0, PARTS, alpha=0.05)
    low, high = limits(-1.0, PARTS, UPPER, n=6, alpha=0.05)
    assert low == plain[0]
    assert high > plain[1]
    low, high = limits(-1.0, PARTS, WidenedLimits(lower=0.8), n=6, alpha=0.05)
    assert low < plain[0]
    assert high == plain[1]
    assert limits_p(1.0, PARTS, UPPER, n=6) == components_p(1.0, PARTS)
    assert limits_p(-1.0, PARTS, UPPER, n=6) > components_p(-1.0, PARTS)


@pytest.mark.parametrize("widened", [UPPER, WidenedLimits(lower=0.8), WidenedLimits(0.0, 1.9)])
def test_the_interval_excludes_zero_exactly_when_p_is_below_alpha(widened):
    for estimate in np.linspace(-9, 9, 181):
        for alpha in (0.05, 0.05 / 8):
            low, high = limits(float(estimate), PARTS, widened, n=6, alpha=alpha)
            assert (low > 0 or high < 0) == (limits_p(float(estimate), PARTS, widened, n=6) < alpha)


@pytest.mark.parametrize("widened", [WidenedLimits(), UPPER])
def test_two_one_sided_tests_agree_with_the_interval_at_twice_alpha(widened):
    for estimate in (-0.5, 0.0, 0.8):
        low, high = limits(estimate, PARTS, widened, n=6, alpha=0.1)
        for margin in (0.9, 1.2, 1.5, 1.9, 2.5):
            passed = limits_tost(estimate, PARTS, widened, n=6, margin=margin) < 0.05
            assert passed == (-margin < low and high < margin)


def test_an_estimate_without_variance_is_known():
    known = (VariancePart(0.0, 2), VariancePart(0.0, 383))
    assert limits_p(-0.1, known, UPPER, n=3) == 0.0
    assert limits(-0.1, known, UPPER, n=3, alpha=0.05) == (-0.1, -0.1)
    assert limits_tost(0.1, known, UPPER, n=3, margin=0.25) == 0.0
    assert math.isnan(limits_p(-0.1, (VariancePart(float("nan"), 0), FLOOR), UPPER, n=1))


def test_a_familys_skewness_widens_the_upper_limit_of_all_of_its_games():
    rng = np.random.default_rng(0)
    floor = rng.standard_normal(384)
    skewed = [compare_to_reference(rng.lognormal(size=6), floor) for _ in range(7)]
    even = compare_to_reference(EVEN - 4, floor)
    (alone,) = call_reference_family([even])
    found = call_reference_family([*skewed, even])[-1]
    assert found.test.widened.upper is not None
    assert found.test.widened.upper > 1
    assert found.test.widened.lower is None
    assert alone.test.widened.upper == 0.0
    assert found.test.p > alone.test.p


def test_the_upper_limit_covers_skewed_run_values_better_than_students():
    """Six log-normal runs, the floor known: Student's 95% interval covers about .82."""
    rng = np.random.default_rng(1)
    truth = math.exp(0.5)
    student = ours = 0
    for _ in range(300):
        values = rng.lognormal(size=(8, 6))
        skewness = family_skewness(values)
        for runs in values:
            parts = (VariancePart(runs.var(ddof=1) / 6, 5), VariancePart(0.0, 383))
            widened = widened_limits(skewness, runs)
            low, high = limits(runs.mean(), parts, widened, n=6, alpha=0.05)
            ours += low <= truth <= high
            low, high = components_interval(runs.mean(), parts, alpha=0.05)
            student += low <= truth <= high
    assert student / 2400 == pytest.approx(0.82, abs=0.03)
    assert ours / 2400 > 0.87
