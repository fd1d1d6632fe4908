"""The comparison of runs with a floor: Student, Clopper and Pearson, and Behrens and Fisher as special cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gapfloor.statistics.behrens_fisher import (
    FloorMean,
    RunsMean,
    VariancePart,
    _gamma_quantile,
    _gamma_score,
    difference_limit,
    floor_mean,
    tail_p,
    two_part_interval,
    two_part_p,
)

pytestmark = pytest.mark.fast


def runs_mean(mean, se, n, **options):
    return RunsMean(np.asarray(mean), np.asarray(se), n - 1, n, options.pop("seen", (0.0, 1.0)), **options)


def normal_floor(sd, df=383):
    return FloorMean(np.zeros(()), np.asarray(sd), np.zeros(()), df)


@pytest.mark.parametrize("n", [3, 6, 20])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_known_floor_gives_student(n, sign):
    found = tail_p(runs_mean(1.3, 0.4, n), normal_floor(0.0), sign=sign)
    assert found == pytest.approx(stats.t.sf(sign * 1.3 / 0.4, n - 1), rel=1e-10)


@pytest.mark.parametrize("ratio", [1e-3, 0.1, 0.24, 0.26, 1.0, 10.0])
@pytest.mark.parametrize("n", [3, 6, 20])
def test_p_is_behrens_and_fishers(ratio, n):
    """The integral of Student's tail over the other Student's density, by scipy's quadrature."""
    from scipy.integrate import quad

    mean = 3.0 * math.hypot(1, ratio)
    expected = quad(
        lambda u: stats.norm.pdf(u) * stats.t.sf((mean + stats.t.ppf(stats.norm.cdf(u), 383)) / ratio, n - 1),
        -8, 8, points=[-mean] if mean < 8 else None, limit=500,
    )[0]  # fmt: skip
    found = tail_p(runs_mean(mean, ratio, n), normal_floor(1.0), sign=1)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("k", "n"), [(0, 20), (0, 384), (1, 384), (5, 384), (120, 384), (384, 384)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_two_valued_floor_has_the_bound_of_clopper_and_pearson(k, n, sign):
    floor = floor_mean(np.repeat([0.0, 1.0], [n - k, k]), 1.0 if sign > 0 else 0.0)
    exact = stats.beta(k + 1, n - k) if sign > 0 else stats.beta(k, n - k + 1)
    for alpha in (0.05, 0.003):
        bound = exact.isf(alpha) if sign > 0 else exact.ppf(alpha)
        if not 0 < bound < 1:
            continue
        known = runs_mean(bound, 1e-9, 6)
        # Few episodes have Student's t, and a lower bound of one success is far out: both are wider than exact.
        ratio = float(tail_p(known, floor, sign=sign)) / alpha
        assert 0.7 < ratio < (1.3 if n > 100 and min(k, n - k) != 1 else 10)


def test_moments_of_the_floor_are_those_of_dirichlet_weights():
    rng = np.random.default_rng(0)
    returns = rng.lognormal(size=40)
    found = floor_mean(returns, 30.0)
    drawn = rng.dirichlet(np.ones(41), 200_000) @ np.append(returns, 30.0)
    assert float(found.mean) == pytest.approx(drawn.mean(), rel=0.01)
    assert float(found.sd) == pytest.approx(drawn.std(), rel=0.01)
    assert float(found.skewness) == pytest.approx(stats.skew(drawn), rel=0.03)


def test_gamma_quantiles_are_scipys_and_have_an_inverse():
    z = np.linspace(-2, 3, 11)
    for skewness in (-1.5, -0.2, 0.0, 0.3, 2.0):
        found = _gamma_quantile(z, np.asarray(skewness))
        inside = np.abs(found * skewness / 2 + 1) > 1e-12
        assert _gamma_score(found, np.asarray(skewness))[inside] == pytest.approx(z[inside], abs=1e-6)
        if skewness:
            exact = stats.pearson3(skewness).ppf(stats.norm.cdf(z))
            assert np.abs(found - exact).max() < 0.25


@pytest.mark.parametrize("se", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_limit_is_where_p_is_alpha(se, sign):
    floor = floor_mean(np.array([0.0] * 30 + [1.0, 3.0]), 5.0 if sign > 0 else -1.0)
    runs = runs_mean(2.0, se, 5, seen=(-1.0, 5.0), skewness=(0.7, 0.7))
    for alpha in (0.025, 0.003):
        limit = difference_limit(runs, floor, sign=sign, alpha=alpha)
        assert float(tail_p(runs, floor, sign=sign, shift=limit)) == pytest.approx(alpha, rel=1e-6)
        assert sign * (float(runs.mean - floor.mean) - limit) > 0


def test_equal_runs_have_the_bound_of_one_more_run():
    known = FloorMean(np.asarray(0.3), np.zeros(()), np.zeros(()), 383)
    assert float(tail_p(runs_mean(1.0, 0.0, 4), known, sign=1)) == pytest.approx(0.3**4)


def johnson(mean, variance, third, n, mu):
    """Johnson's modified t (1978, equation 2.7) of a sample with these moments about the true mean mu."""
    shift = third / (6 * variance * n) + third / (3 * variance**2) * (mean - mu) ** 2
    return (mean - mu + shift) / math.sqrt(variance / n)


@pytest.mark.parametrize(("skewness", "tolerance"), [(0.0, 1e-6), (0.01, 1e-3), (0.05, 2e-2)])
def test_the_widened_limit_is_johnsons_to_first_order(skewness, tolerance):
    n, variance = 6, 2.0
    runs = runs_mean(0.0, math.sqrt(variance / n), n, skewness=(0.0, skewness))
    limit = difference_limit(runs, normal_floor(0.0), sign=-1, alpha=0.025)
    t = johnson(0.0, variance, skewness * variance**1.5, n, limit)
    assert t == pytest.approx(-stats.t.isf(0.025, n - 1), abs=tolerance)


def test_the_correction_at_most_doubles_the_limit_and_moves_only_its_side():
    for alpha in (0.25, 0.025, 1e-8):
        plain, widened = (
            difference_limit(
                runs_mean(0.0, 1.0, 3, skewness=(0.0, g)), normal_floor(0.0), sign=-1, alpha=alpha
            )
            for g in (0.0, 1.7)
        )
        assert plain < widened <= 2 * plain * (1 + 1e-9)
    low = difference_limit(
        runs_mean(0.0, 1.0, 3, skewness=(0.0, 1.7)), normal_floor(0.0), sign=1, alpha=0.025
    )
    assert low == pytest.approx(-stats.t.isf(0.025, 2))


RUNS, FLOOR = VariancePart(0.36, 5), VariancePart(0.04, 383)


def test_one_part_is_students_test():
    sample = np.array([1.2, 0.4, 2.2, 0.9, 1.7, -0.3])
    parts = VariancePart(sample.var(ddof=1) / sample.size, sample.size - 1), VariancePart(0.0, 9)
    theirs = stats.ttest_1samp(sample, 0.0)
    assert two_part_p(sample.mean(), *parts) == pytest.approx(theirs.pvalue, rel=1e-9)
    assert two_part_interval(sample.mean(), *parts, alpha=0.05) == pytest.approx(
        tuple(theirs.confidence_interval(0.95)), rel=1e-9
    )


def test_the_two_part_interval_excludes_zero_exactly_when_p_is_below_alpha():
    for estimate in np.linspace(-4, 6, 40):
        for alpha in (0.05, 0.05 / 8, 0.001):
            low, high = two_part_interval(float(estimate), RUNS, FLOOR, alpha=alpha)
            assert (low > 0 or high < 0) == (two_part_p(float(estimate), RUNS, FLOOR) < alpha)


def test_the_two_part_interval_is_narrower_than_banerjees():
    """His half-width is sqrt(sum of variance * squared quantile), and never too small for normal data."""
    for alpha in (0.05, 0.05 / 8):
        banerjee = math.hypot(0.6 * stats.t.isf(alpha / 2, 5), 0.2 * stats.t.isf(alpha / 2, 383))
        low, high = two_part_interval(0.0, RUNS, FLOOR, alpha=alpha)
        assert 0.95 * banerjee < high < banerjee
        assert high == pytest.approx(-low)


@pytest.mark.parametrize("n", [3, 6])
def test_the_size_is_kept_at_holms_first_step_where_welch_fails(n):
    """Normal run values and a floor whose error is a third of theirs, where Welch is worst."""
    rng = np.random.default_rng(0)
    size, alpha, floor = 200_000, 0.05 / 8, 0.1
    estimate = rng.standard_normal(size) * math.sqrt(1 - floor) + rng.standard_normal(size) * math.sqrt(floor)
    runs = (1 - floor) * rng.chisquare(n - 1, size) / (n - 1)
    other = floor * rng.chisquare(383, size) / 383
    known = RunsMean(np.abs(estimate), np.sqrt(runs), n - 1, n, (0.0, 1.0))
    zero = np.zeros(size)
    rejected = np.mean(2 * tail_p(known, FloorMean(zero, np.sqrt(other), zero, 383), sign=1) < alpha)
    assert rejected <= alpha + 4 * math.sqrt(alpha / size)
    df = (runs + other) ** 2 / (runs**2 / (n - 1) + other**2 / 383)
    welch = np.mean(np.abs(estimate) / np.sqrt(runs + other) > stats.t.isf(alpha / 2, df))
    assert welch > 1.4 * alpha


def test_two_parts_may_come_in_any_order():
    assert two_part_p(1.3, FLOOR, RUNS) == two_part_p(-1.3, RUNS, FLOOR) == two_part_p(1.3, RUNS, FLOOR)


def test_an_estimate_without_variance_is_known():
    nothing, unknown = VariancePart(0.0, 2), VariancePart(float("nan"), 0)
    assert two_part_p(0.0, nothing, nothing) == 1.0
    assert two_part_p(0.1, nothing, nothing) == 0.0
    assert math.isnan(two_part_p(0.1, nothing, unknown))
    assert two_part_interval(0.1, nothing, nothing, alpha=0.05) == (0.1, 0.1)


def test_tiny_two_part_p_keep_their_order():
    p = [two_part_p(x, RUNS, FLOOR) for x in (10.0, 20.0, 40.0)]
    assert p[0] > p[1] > p[2] > 0
    assert 0 < two_part_p(1000.0, VariancePart(0.0025, 1), VariancePart(0.0026, 383)) < 1e-3
