"""The robust estimators, each against an independent computation and its own claim."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from gapfloor.errors import UsageError
from gapfloor.statistics.clustered import (
    LevelMatrix,
    clustered_sem,
    crossed_gap,
    crossed_mean,
    level_matrix,
    level_variance,
    level_variance_share,
    residual_variance,
)
from gapfloor.statistics.random_effects import random_effects_mean
from gapfloor.statistics.signflip import sign_flip_test

pytestmark = pytest.mark.fast


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class TestSignFlip:
    def test_it_is_scipys_exact_permutation_test(self):
        values = rng(1).normal(0.4, 1, 8)
        theirs = stats.permutation_test(
            (values,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
        )
        assert sign_flip_test(values, rng=rng()).p == pytest.approx(theirs.pvalue, rel=1e-12)

    def test_it_is_the_enumeration(self):
        values = np.array([0.5, -1.0, 2.0, 3.0])
        sums = [abs(np.dot(signs, values)) for signs in itertools.product((-1, 1), repeat=4)]
        assert sign_flip_test(values, rng=rng()).p == np.mean(np.array(sums) >= abs(values.sum()))

    @pytest.mark.parametrize(("n", "smallest"), [(3, 0.25), (6, 0.03125), (12, 2 / 2**12)])
    def test_the_smallest_p_is_reached_when_all_signs_agree(self, n, smallest):
        found = sign_flip_test(np.arange(1.0, n + 1), rng=rng())
        assert found.p == found.smallest == smallest

    def test_many_runs_are_drawn_and_agree_with_t(self):
        values = rng(2).normal(0.3, 1, 40)
        found = sign_flip_test(values, rng=rng())
        assert found.smallest == 1 / 100_001
        assert found.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, abs=0.01)


class TestClustered:
    levels = rng(3).integers(0, 30, 384)
    returns = rng(4).normal(size=30)[levels] * 2 + rng(5).normal(size=384)

    def test_floor_sem_is_statsmodels_cluster_robust(self):
        fit = sm.OLS(self.returns, np.ones(384)).fit(cov_type="cluster", cov_kwds={"groups": self.levels})
        assert clustered_sem(self.returns, self.levels) == pytest.approx(fit.bse[0], rel=1e-10)

    def test_distinct_levels_give_the_plain_sem(self):
        plain = self.returns.std(ddof=1) / np.sqrt(384)
        assert clustered_sem(self.returns, np.arange(384)) == pytest.approx(plain)

    def test_crossed_error_is_the_two_way_anova(self):
        """V_run + V_level - V_residual from textbook mean squares (equal weights)."""
        values = rng(6).normal(size=(6, 1)) + rng(7).normal(size=(1, 40)) + rng(8).normal(size=(6, 40))
        found = crossed_mean(LevelMatrix(values, np.full(40, 1 / 40)))
        fitted = values.mean(1, keepdims=True) + values.mean(0, keepdims=True) - values.mean()
        ms_run = 40 * values.mean(1).var(ddof=1)
        ms_level = 6 * values.mean(0).var(ddof=1)
        ms_residual = ((values - fitted) ** 2).sum() / (5 * 39)
        parts = np.array([ms_run, ms_level, ms_residual]) / 240
        assert level_variance(values.mean(0), np.full(40, 1 / 40)) == pytest.approx(parts[1])
        assert residual_variance(values, np.full(40, 1 / 40)) == pytest.approx(parts[2])
        assert found.se == pytest.approx(np.sqrt(parts[0] + parts[1] - parts[2]))
        df = found.se**4 / (parts[0] ** 2 / 5 + parts[1] ** 2 / 39 + parts[2] ** 2 / 195)
        assert found.df == pytest.approx(df)

    def test_gap_of_two_sets_adds_their_level_variances(self):
        train = LevelMatrix(rng(1).normal(size=(6, 50)), np.full(50, 0.02))
        test = LevelMatrix(rng(2).normal(size=(6, 25)), np.full(25, 0.04))
        both = crossed_gap(train, test)
        runs = train.values.mean(1) - test.values.mean(1)
        assert both.value == pytest.approx(runs.mean())
        v_run = runs.var(ddof=1) / 6
        v_level = sum(level_variance(each.values.mean(0), each.weights) for each in (train, test))
        v_residual = sum(residual_variance(each.values, each.weights) for each in (train, test))
        assert both.se == pytest.approx(np.sqrt(max(v_run + v_level - v_residual, v_run, v_level)))

    def test_matrix_weighs_levels_by_how_often_they_were_played(self):
        runs = [(self.returns, self.levels), (self.returns + 1, self.levels)]
        matrix = level_matrix(runs)
        assert crossed_mean(matrix).value == pytest.approx(self.returns.mean() + 0.5)
        equal = level_matrix(runs, equal_weights=True)
        by_level = [self.returns[self.levels == level].mean() for level in np.unique(self.levels)]
        assert crossed_mean(equal).value == pytest.approx(np.mean(by_level) + 0.5)

    def test_level_paired_delta_takes_the_levels_own_floor_away(self):
        ease = rng(9).normal(size=30) * 5
        floor = (ease[self.levels], self.levels)
        runs = [(ease[self.levels] + shift, self.levels) for shift in (1.0, 2.0, 3.0)]
        paired = crossed_mean(level_matrix(runs, floor=floor, equal_weights=True))
        assert paired.value == pytest.approx(2.0)
        assert paired.se == pytest.approx(1 / np.sqrt(3))

    def test_nothing_shared_is_not_crossed(self):
        assert level_matrix([(self.returns, self.levels), (self.returns, self.levels + 1000)]) is None
        assert level_matrix([(self.returns, self.levels[:0])]) is None

    def test_level_share_is_one_for_a_function_of_the_level_and_near_zero_for_noise(self):
        ease = rng(9).normal(size=30)
        assert level_variance_share([(ease[self.levels], self.levels)]) == pytest.approx(1.0)
        assert level_variance_share([(rng(1).normal(size=384), self.levels)] * 3) < 0.1

    def test_level_share_is_the_intraclass_correlation(self):
        levels = np.repeat(np.arange(60), 5)
        returns = rng(1).normal(size=60)[levels] * 1.5 + rng(2).normal(size=300)
        groups = returns.reshape(60, 5)
        between, within = 5 * groups.mean(1).var(ddof=1), groups.var(axis=1, ddof=1).mean()
        icc = (between - within) / (between + 4 * within)
        assert level_variance_share([(returns, levels)]) == pytest.approx(icc)

    def test_gap_needs_the_same_runs(self):
        with pytest.raises(UsageError, match="same runs, but have 6 and 5"):
            crossed_gap(
                LevelMatrix(np.ones((6, 3)), np.ones(3) / 3), LevelMatrix(np.ones((5, 3)), np.ones(3) / 3)
            )


class TestRandomEffects:
    gaps, variances = rng(4).normal(1, 0.6, 8), rng(5).uniform(0.02, 0.2, 8)

    @pytest.mark.parametrize("seed", range(20))
    def test_it_is_statsmodels(self, seed):
        n = 2 + seed % 7
        gaps, variances = rng(seed).normal(1, 0.3, n), rng(100 + seed).uniform(0.001, 0.3, n)
        found = random_effects_mean(gaps, variances)
        theirs = combine_effects(gaps, variances, method_re="iterated", use_t=True)
        assert found.tau**2 == pytest.approx(theirs.tau2, rel=1e-12, abs=1e-15)
        assert found.mean == pytest.approx(theirs.mean_effect_re, rel=1e-12)
        assert found.se == pytest.approx(theirs.sd_eff_w_re_hksj, rel=1e-9)

    def test_it_is_what_statsmodels_gave(self):
        """Fixed values of `combine_effects([1, 2, 4, 5.5], [0.5, 0.3, 0.4, 0.6], method_re="iterated", use_t=True)`."""
        found = random_effects_mean([1.0, 2.0, 4.0, 5.5], [0.5, 0.3, 0.4, 0.6])
        fixed = (3.5448304307, 3.1018976236, 0.99896196637)
        assert (found.tau**2, found.mean, found.se) == pytest.approx(fixed, rel=1e-9)

    def test_runs_that_agree_have_no_variance_between_them(self):
        assert random_effects_mean([1.0, 1.1, 0.9], [0.5, 0.5, 0.5]).tau == 0

    def test_paule_and_mandels_equation_holds(self):
        """sum w (y - mean)^2 = k - 1 at the between-run variance found."""
        found = random_effects_mean(self.gaps, self.variances)
        weights = 1 / (self.variances + found.tau**2)
        mean = np.average(self.gaps, weights=weights)
        assert np.sum(weights * (self.gaps - mean) ** 2) == pytest.approx(7, rel=1e-4)
        assert found.mean == pytest.approx(mean)

    def test_prediction_is_wider_than_the_mean(self):
        found = random_effects_mean(self.gaps, self.variances)
        assert (
            found.prediction[0] < found.mean - 2 * found.se < found.mean + 2 * found.se < found.prediction[1]
        )

    def test_runs_without_any_variance_have_no_random_effects(self):
        assert np.isnan(random_effects_mean([1.0, 2.0], [0.0, 0.0]).tau)
