"""The tests against independent computations: scipy, statsmodels, enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind

from gapfloor.errors import UsageError
from gapfloor.statistics.bootstrap import (
    _convolved,
    _means_by_index,
    _ordered_uniforms,
    difference_interval,
    distribution_of_mean,
    percentile_interval,
    resampled_differences,
    resampled_means,
)
from gapfloor.statistics.conventions import sem
from gapfloor.statistics.families import call_family, holm
from gapfloor.statistics.gaps import combine_fisher, combine_stouffer, gap
from gapfloor.statistics.paired import (
    difference_of_agents,
    paired_difference,
)
from gapfloor.statistics.reference_calls import compare_to_floor
from gapfloor.statistics.welch import moments, welch_of_moments
from welch_arrays import welch

pytestmark = pytest.mark.fast


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


RUNS = rng(1).normal(3, 1, 6)
FLOOR = rng(2).poisson(2.5, 384).astype(float)


class TestFloorComparison:
    def test_welch_is_scipys(self):
        ours = compare_to_floor(RUNS, FLOOR, rng=rng())
        theirs = stats.ttest_ind(RUNS, FLOOR, equal_var=False)
        assert (ours.delta / ours.se, ours.df, ours.p) == pytest.approx(
            (theirs.statistic, theirs.df, theirs.pvalue), rel=1e-12
        )

    def test_tiny_p_keep_their_digits(self):
        ours = compare_to_floor(RUNS + 60, FLOOR, rng=rng())
        assert ours.p == pytest.approx(stats.ttest_ind(RUNS + 60, FLOOR, equal_var=False).pvalue, rel=1e-9)

    def test_tost_is_statsmodels(self):
        ours = compare_to_floor(RUNS, FLOOR, rng=rng())
        theirs = ttost_ind(RUNS, FLOOR, -ours.margin, ours.margin, usevar="unequal")[0]
        assert ours.p_tost == pytest.approx(theirs, rel=1e-10)

    def test_margin_is_a_tenth_of_the_floor_but_never_less_than_a_quarter(self):
        assert compare_to_floor(RUNS, FLOOR * 10, rng=rng()).margin == pytest.approx(FLOOR.mean())
        assert compare_to_floor(RUNS, FLOOR * 0.01, rng=rng()).margin == 0.25

    def test_interval_is_scipys_bootstrap_up_to_resampling_error(self):
        ours = compare_to_floor(RUNS, FLOOR, rng=rng(), n_resamples=200_000)
        theirs = stats.bootstrap(
            (RUNS, FLOOR),
            lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
            n_resamples=100_000,
            batch=1000,
            vectorized=True,
            method="percentile",
            random_state=rng(5),
        ).confidence_interval
        # An end's Monte Carlo sd is sqrt(.025 * .975 / 1e5) / density, here below .003.
        assert ours.ci == pytest.approx((theirs.low, theirs.high), abs=0.012)

    def test_order_of_runs_and_episodes_changes_nothing(self):
        shuffled = compare_to_floor(rng(8).permutation(RUNS), rng(9).permutation(FLOOR), rng=rng())
        assert shuffled == compare_to_floor(RUNS, FLOOR, rng=rng())

    def test_same_seed_same_bytes_other_seed_other_bytes(self):
        first, again, other = (compare_to_floor(RUNS, FLOOR, rng=rng(s)) for s in (4, 4, 5))
        assert first == again
        assert first.ci != other.ci

    def test_one_run_is_described_but_not_tested(self):
        one = compare_to_floor([5.0], FLOOR, rng=rng())
        assert one.delta == pytest.approx(5 - FLOOR.mean())
        assert np.isnan([one.p, one.p_tost, one.sem, *one.ci]).all()
        assert call_family([one])[0].call == "not tested"

    def test_runs_that_all_agree_are_tested_against_the_floors_variance(self):
        same = compare_to_floor([0.0] * 6, FLOOR, rng=rng())
        theirs = stats.ttest_1samp(FLOOR, 0.0)
        assert (same.delta / same.se, same.df) == pytest.approx((-theirs.statistic, 383))

    @pytest.mark.parametrize("bad", [[1.0, float("nan")], [1.0, float("inf")]])
    def test_values_that_are_not_finite_are_refused(self, bad):
        with pytest.raises(UsageError, match=r"`run_values` must be finite .*, but value 1"):
            compare_to_floor(bad, FLOOR, rng=rng())

    def test_a_matrix_is_refused(self):
        with pytest.raises(UsageError, match="one-dimensional"):
            compare_to_floor(np.ones((2, 3)), FLOOR, rng=rng())


class TestFamilies:
    def test_holm_is_statsmodels(self):
        for seed in range(20):
            p = rng(seed).random(8) ** 3
            assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], rel=1e-14)

    def test_a_test_that_could_not_be_done_does_not_enlarge_the_family(self):
        adjusted = holm([0.01, np.nan, 0.04])
        assert adjusted[[0, 2]] == pytest.approx([0.02, 0.04])
        assert np.isnan(adjusted[1])

    def test_order_of_games_does_not_change_a_games_call(self):
        comparisons = [compare_to_floor(RUNS + d, FLOOR, rng=rng()) for d in (-2, -0.4, 0, 0.9, 1.4)]
        forward = call_family(comparisons)
        assert call_family(comparisons[::-1]) == forward[::-1]

    def test_a_run_sample_close_to_the_floor_is_equivalent(self):
        runs = FLOOR.mean() + 0.01 * (RUNS - RUNS.mean())
        assert call_family([compare_to_floor(runs, FLOOR, rng=rng())])[0].call == "equivalent"


class TestGap:
    train = tuple(rng(10 + i).poisson(4, 384).astype(float) for i in range(6))
    test = tuple(rng(20 + i).poisson(3.8, 384).astype(float) for i in range(6))

    def test_per_run_welch_fisher_and_stouffer_are_scipys(self):
        ours = gap(self.train, self.test, rng=rng())
        theirs = [stats.ttest_ind(a, b, equal_var=False) for a, b in zip(self.train, self.test, strict=True)]
        assert [run.p for run in ours.runs] == pytest.approx([t.pvalue for t in theirs], rel=1e-12)
        assert ours.p_fisher == pytest.approx(
            stats.combine_pvalues([t.pvalue for t in theirs]).pvalue, rel=1e-10
        )
        one_sided = [
            stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue
            for a, b in zip(self.train, self.test, strict=True)
        ]
        combined = stats.combine_pvalues(one_sided, method="stouffer")
        assert ours.stouffer_z == pytest.approx(combined.statistic, rel=1e-9)

    def test_stouffer_is_negative_when_test_is_higher_however_extreme(self):
        forward = gap([t + 50 for t in self.train], self.test, rng=rng())
        backward = gap(self.test, [t + 50 for t in self.train], rng=rng())
        assert forward.stouffer_z == pytest.approx(-backward.stouffer_z)
        assert np.isfinite(forward.stouffer_z)
        assert 0 <= forward.p_fisher < 1e-30

    def test_order_of_runs_changes_nothing_but_the_order_of_runs(self):
        forward = gap(self.train, self.test, rng=rng())
        backward = gap(self.train[::-1], self.test[::-1], rng=rng())
        assert backward.runs == forward.runs[::-1]
        assert (backward.ci, backward.p_fisher, backward.sem) == (forward.ci, forward.p_fisher, forward.sem)

    def test_a_run_without_its_other_half_is_refused(self):
        with pytest.raises(UsageError, match="need the same runs, but have 6 and 5"):
            gap(self.train, self.test[:5], rng=rng())

    def test_fisher_of_one_p_is_that_p(self):
        assert combine_fisher([0.03]) == pytest.approx(0.03)
        assert combine_stouffer([1.7]) == pytest.approx(1.7)


def agent_difference(a, b, method="recommended"):
    return difference_of_agents(a, b, rng=rng(), method=method, confidence=0.95, n_resamples=1000)


class TestDifferences:
    a, b = rng(30).normal(1, 1, 6), rng(31).normal(0, 2, 6)

    def test_paired_is_scipys_ttest_rel(self):
        ours = paired_difference(self.a, self.b, rng=rng(), method="recommended")
        theirs = stats.ttest_rel(self.a, self.b)
        interval = theirs.confidence_interval(0.95)
        assert (ours.value / ours.se, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))
        assert ours.interval == pytest.approx((interval.low, interval.high))

    def test_agents_are_scipys_welch_by_the_papers_method(self):
        ours = agent_difference(self.a, self.b[:4], "paper")
        theirs = stats.ttest_ind(self.a, self.b[:4], equal_var=False)
        assert (ours.value / ours.se, ours.df, ours.p) == pytest.approx(
            (theirs.statistic, theirs.df, theirs.pvalue)
        )

    def test_agents_are_behrens_and_fishers_convolution_by_the_recommended_method(self):
        ours = agent_difference(self.a, self.b[:4])
        errors = stats.sem(self.a), stats.sem(self.b[:4])

        def p_beyond(shift):
            scores = np.linspace(-200, 200, 400_001)
            other = stats.t.pdf(scores, 3) * (scores[1] - scores[0])
            return float(stats.t.sf((shift - errors[1] * scores) / errors[0], 5) @ other)

        assert ours.p == pytest.approx(2 * p_beyond(abs(ours.value)), rel=2e-3)
        half = (ours.high - ours.low) / 2
        assert p_beyond(half) == pytest.approx(0.025, rel=5e-3)

    def test_paired_needs_the_same_runs(self):
        with pytest.raises(UsageError, match="same runs, but have 6 and 5"):
            paired_difference(self.a, self.b[:5], rng=rng())

    def test_no_variance_at_all_is_certain_or_nothing(self):
        assert paired_difference([1.0, 1.0], [1.0, 1.0], rng=rng()).p == 1.0
        assert paired_difference([2.0, 2.0], [1.0, 1.0], rng=rng()).p == 0.0
        constant = moments(np.ones(3))
        assert welch_of_moments(constant, constant).p == 1.0
        assert welch_of_moments(moments(np.full(3, 2.0)), constant).p == 0.0


class TestBootstrap:
    def test_three_values_give_the_enumerated_distribution(self):
        values = np.array([0.0, 1.0, 5.0])
        exact = np.mean(list(itertools.product(values, repeat=3)), axis=1)
        drawn = resampled_means(values, n_resamples=200_000, rng=rng())
        for point in np.unique(exact):
            share = np.mean(np.isclose(exact, point))
            assert np.mean(np.isclose(drawn, point)) == pytest.approx(share, abs=4 * np.sqrt(share / 200_000))

    @pytest.mark.parametrize("step", [1.0, 10.0, 0.1])
    def test_grid_and_index_draw_from_the_same_distribution(self, step):
        values = np.sort(rng(3).poisson(2, 200) * step)
        on_grid = resampled_means(values, n_resamples=20_000, rng=rng(1))
        by_index = _means_by_index(values, n_resamples=20_000, rng=rng(2))
        assert (on_grid[:5] != resampled_means(values, n_resamples=20_000, rng=rng(2))[:5]).any()
        # Sums in another order differ in the last bit, which would break ties between the two samples.
        assert stats.ks_2samp(on_grid.round(9), by_index.round(9)).pvalue > 1e-3
        assert on_grid.mean() == pytest.approx(values.mean(), abs=0.01 * step)
        assert on_grid.std() == pytest.approx(by_index.std(), rel=0.03)

    def test_differences_of_two_grids_are_of_independent_means(self):
        """Both samples take the fast way; their means must not be paired by size."""
        a, b = np.sort(rng(3).poisson(2, 200)).astype(float), np.sort(rng(4).poisson(3, 300)).astype(float)
        drawn = resampled_differences(a, b, n_resamples=50_000, rng=rng(5))
        variance = a.var() / 200 + b.var() / 300
        assert drawn.mean() == pytest.approx(a.mean() - b.mean(), abs=4 * np.sqrt(variance / 50_000))
        assert drawn.var() == pytest.approx(variance, rel=0.03)

    def test_differences_from_real_values_are_of_independent_means(self):
        """The means of the second sample are drawn in ascending order, without sorting."""
        a, b = np.sort(rng(3).normal(size=6)), np.sort(rng(4).gamma(2.0, 2.0, size=384))
        drawn = resampled_differences(a, b, n_resamples=50_000, rng=rng(5))
        means = (each[rng(6).integers(0, each.size, (50_000, each.size))].mean(axis=1) for each in (a, b))
        assert stats.ks_2samp(drawn, np.subtract(*means)).pvalue > 1e-3
        uniforms = _ordered_uniforms(50_000, rng(7))
        assert (np.diff(uniforms) >= 0).all()
        assert stats.kstest(uniforms, "uniform").pvalue > 1e-3

    @pytest.mark.parametrize("n", [2, 6, 7, 12, 18, 40])
    def test_tables_of_sums_draw_as_single_draws_do(self, n):
        values = np.sort(rng(n).exponential(size=n))
        by_table = _means_by_index(values, n_resamples=30_000, rng=rng(1))
        singly = values[rng(2).integers(0, n, (30_000, n))].mean(axis=1)
        assert stats.ks_2samp(by_table.round(9), singly.round(9)).pvalue > 1e-3

    @pytest.mark.parametrize(
        "values",
        [
            rng(3).normal(size=100),
            rng(3).gamma(2.0, 2.0, size=500),
            rng(3).binomial(40, 0.1, size=8000).astype(float),
            rng(3).integers(0, 50_000, size=3000) / 10,
        ],
        ids=["normal", "skewed", "many whole numbers", "wide grid"],
    )
    def test_real_values_and_large_grids_have_the_bootstrap_distribution_of_the_mean(self, values):
        values = np.sort(values)
        n, error = values.size, values.std() / np.sqrt(values.size)
        ours = resampled_means(values, n_resamples=20_000, rng=rng(4))
        by_index = _means_by_index(values, n_resamples=20_000, rng=rng(5))
        assert stats.ks_2samp(ours.round(9), by_index.round(9)).pvalue > 1e-3
        points, chances = distribution_of_mean(values, None)
        mean = points @ chances
        assert mean == pytest.approx(values.mean(), abs=1e-9 * error)
        assert np.sqrt((points - mean) ** 2 @ chances) == pytest.approx(error, rel=1e-9)
        skewness = ((points - mean) / error) ** 3 @ chances
        assert skewness == pytest.approx(stats.skew(values) / np.sqrt(n), abs=1e-3)

    def test_a_window_of_the_grid_holds_the_full_convolution(self):
        values = np.sort(rng(1).binomial(20, 0.1, 384).astype(float))
        points, chances = _convolved(values, 1.0, int(values[-1] - values[0]) + 1)
        windowed = dict(zip(*(x.tolist() for x in distribution_of_mean(values, 1.0)), strict=True))
        near = {round(point * 384): chance for point, chance in windowed.items()}
        np.testing.assert_allclose([near.get(round(p * 384), 0.0) for p in points], chances, atol=1e-13)

    def test_a_rare_large_value_is_drawn_as_often_as_it_should_be(self):
        values = np.sort(np.r_[rng(2).normal(size=59), 1000.0])
        points, chances = distribution_of_mean(values, None)
        for copies in (0, 1, 5, 8):
            low, high = ((copies + side) * 1000 / 60 for side in (-0.5, 0.5))
            expected = stats.binom.pmf(copies, 60, 1 / 60)
            assert chances[(points > low) & (points < high)].sum() == pytest.approx(expected, abs=1e-9)

    def test_many_values_are_drawn_from_all_of_them(self):
        values = np.arange(300.0) + 0.1 * np.sqrt(np.arange(300.0))
        drawn = _means_by_index(values, n_resamples=4000, rng=rng(4))
        assert drawn.mean() == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(300 * 4000))
        assert drawn.std() == pytest.approx(values.std() / np.sqrt(300), rel=0.05)

    def test_a_constant_sample_has_constant_means(self):
        assert (resampled_means(np.full(100, 3.0), n_resamples=50, rng=rng()) == 3.0).all()

    @pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (3, 4), (2, 5)])
    def test_counted_samples_give_the_interval_of_all_resamples(self, sizes):
        """Few runs are counted instead of resampled one by one: same random numbers, same bytes."""
        first, second = (np.sort(np.random.default_rng(n).normal(size=n)) for n in sizes)
        settings = {"confidence": 0.95, "n_resamples": 10_000}
        counted = difference_interval(first, second, rng=np.random.default_rng(1), **settings)
        resamples = resampled_differences(first, second, rng=np.random.default_rng(1))
        assert counted == percentile_interval(resamples)

    def test_interval_leaves_equal_tails(self):
        assert percentile_interval(np.arange(1001.0), confidence=0.9) == pytest.approx((50, 950))
        for n in (1, 2, 10, 777, 10_000):
            values = rng(n).normal(size=n)
            assert percentile_interval(values) == pytest.approx(tuple(np.quantile(values, (0.025, 0.975))))


@pytest.mark.parametrize(
    ("a", "b"),
    [([1.0, 2.0, 4.5], [0.3, 0.1]), ([2.0, 2.0], [2.0, 2.0, 2.0]), ([3.0, 3.0], [1.0, 1.0]), ([1.0], [2.0, 3.0]),
     ([2.0, 2.0, 2.0], [1.0, 1.5])],
)  # fmt: skip
def test_welch_of_two_samples_is_the_vectorised_one_of_the_simulations(
    a: list[float], b: list[float]
) -> None:
    first, second = moments(np.array(a)), moments(np.array(b))
    one = welch_of_moments(first, second)
    many = welch(first.mean, first.variance, first.n, second.mean, second.variance, second.n)
    np.testing.assert_allclose(
        [one.difference, one.se, one.t, one.df, one.p],
        [float(value) for value in (many.difference, many.se, many.t, many.df, many.p)],
        rtol=1e-14,
    )
    assert first.sem == sem(np.array(a)) or len(a) == 1
