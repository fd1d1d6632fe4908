"""Banerjee's interval and p for a variance that is a sum of parts keep their level, and are Student's for one part."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from gapfloor.statistics.components import (
    VariancePart,
    components_interval,
    components_p,
    reach,
)

pytestmark = pytest.mark.fast

RUNS = VariancePart(0.36, 5)
FLOOR = VariancePart(0.04, 383)


def test_one_part_is_students_test():
    sample = np.array([1.2, 0.4, 2.2, 0.9, 1.7, -0.3])
    part = VariancePart(sample.var(ddof=1) / sample.size, sample.size - 1)
    theirs = stats.ttest_1samp(sample, 0.0)
    assert components_p(sample.mean(), [part]) == pytest.approx(theirs.pvalue, rel=1e-12)
    low, high = components_interval(sample.mean(), [part], alpha=0.05)
    assert (low, high) == pytest.approx(theirs.confidence_interval(0.95), rel=1e-12)


def test_two_parts_are_banerjees_formula():
    def half_width(alpha):
        return math.sqrt(0.36 * stats.t.isf(alpha / 2, 5) ** 2 + 0.04 * stats.t.isf(alpha / 2, 383) ** 2)

    assert reach([RUNS, FLOOR], alpha=0.01) == pytest.approx(half_width(0.01), rel=1e-12)
    expected = optimize.brentq(lambda p: half_width(p) - 2.0, 1e-6, 0.5, xtol=1e-14)
    assert components_p(2.0, [RUNS, FLOOR]) == pytest.approx(expected, rel=1e-8)


def test_the_interval_is_never_wider_than_with_the_smallest_df():
    for alpha in (0.05, 0.05 / 8):
        whole = math.sqrt(0.40) * stats.t.isf(alpha / 2, 5)
        assert reach([RUNS, FLOOR], alpha=alpha) < whole


def test_the_interval_excludes_zero_exactly_when_p_is_below_alpha():
    for estimate in np.linspace(0.2, 6, 60):
        for alpha in (0.05, 0.05 / 8, 0.001):
            low, high = components_interval(float(estimate), [RUNS, FLOOR], alpha=alpha)
            assert (low > 0 or high < 0) == (components_p(float(estimate), [RUNS, FLOOR]) < alpha)


@pytest.mark.parametrize("n", [3, 6])
def test_the_size_is_kept_at_holms_first_step_where_welch_fails(n):
    """Normal run values and a floor whose error is a third of theirs, where Welch is worst."""
    rng = np.random.default_rng(0)
    size, alpha, floor = 200_000, 0.05 / 8, 0.1
    estimate = rng.standard_normal(size) * math.sqrt(1 - floor) + rng.standard_normal(size) * math.sqrt(floor)
    runs = (1 - floor) * rng.chisquare(n - 1, size) / (n - 1)
    parts = np.stack([runs, floor * rng.chisquare(383, size) / 383], axis=-1)
    quantiles = stats.t.isf(alpha / 2, [n - 1, 383])
    rejected = np.mean(estimate**2 > (parts * quantiles**2).sum(axis=-1))
    assert rejected <= alpha + 4 * math.sqrt(alpha / size)
    df = parts.sum(-1) ** 2 / (parts[:, 0] ** 2 / (n - 1) + parts[:, 1] ** 2 / 383)
    welch = np.mean(np.abs(estimate) / np.sqrt(parts.sum(-1)) > stats.t.isf(alpha / 2, df))
    assert welch > 1.4 * alpha


def test_parts_may_come_in_any_order_and_empty_parts_do_not_matter():
    p = components_p(1.3, [RUNS, FLOOR])
    assert components_p(1.3, [FLOOR, RUNS]) == pytest.approx(p, rel=1e-12)
    assert components_p(-1.3, [RUNS, FLOOR, VariancePart(0.0, 1)]) == pytest.approx(p, rel=1e-12)


def test_an_estimate_without_variance_is_known():
    assert components_p(0.0, [VariancePart(0.0, 2)]) == 1.0
    assert components_p(0.1, [VariancePart(0.0, 2)]) == 0.0
    assert math.isnan(components_p(0.1, [VariancePart(float("nan"), 0)]))


def test_tiny_p_keep_their_order():
    p = [components_p(x, [RUNS, FLOOR]) for x in (10.0, 20.0, 40.0)]
    assert p[0] > p[1] > p[2] > 0


def test_two_runs_far_from_the_floor_have_a_p():
    assert 0 < components_p(1000.0, [VariancePart(0.0025, 1), VariancePart(0.0026, 383)]) < 1e-3
