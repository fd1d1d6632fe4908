"""The robust estimators, each against an independent computation and its own claim."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import statsmodels.api as sm

from gapfloor.errors import UsageError
from gapfloor.statistics.level_crossing import (
    LevelTable,
    clustered_sem,
    crossed_gap,
    crossed_mean,
    level_table,
    level_variance,
    level_variance_share,
    residual_variance,
)

pytestmark = pytest.mark.fast


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def equally_weighted(table: LevelTable) -> LevelTable:
    return dataclasses.replace(table, weights=np.full_like(table.weights, 1 / table.weights.size))


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
        found = crossed_mean(LevelTable(values, np.full(40, 1 / 40)))
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
        train = LevelTable(rng(1).normal(size=(6, 50)), np.full(50, 0.02))
        test = LevelTable(rng(2).normal(size=(6, 25)), np.full(25, 0.04))
        both = crossed_gap(train, test)
        runs = train.values.mean(1) - test.values.mean(1)
        assert both.value == pytest.approx(runs.mean())
        v_run = runs.var(ddof=1) / 6
        v_level = sum(level_variance(each.values.mean(0), each.weights) for each in (train, test))
        v_residual = sum(residual_variance(each.values, each.weights) for each in (train, test))
        assert both.se == pytest.approx(np.sqrt(max(v_run + v_level - v_residual, v_run, v_level)))

    def test_matrix_weighs_levels_by_how_often_they_were_played(self):
        runs = [(self.returns, self.levels), (self.returns + 1, self.levels)]
        matrix = level_table(runs)
        assert crossed_mean(matrix).value == pytest.approx(self.returns.mean() + 0.5)
        by_level = [self.returns[self.levels == level].mean() for level in np.unique(self.levels)]
        assert crossed_mean(equally_weighted(matrix)).value == pytest.approx(np.mean(by_level) + 0.5)

    def test_level_paired_delta_takes_the_levels_own_floor_away(self):
        ease = rng(9).normal(size=30) * 5
        floor = (ease[self.levels], self.levels)
        runs = [(ease[self.levels] + shift, self.levels) for shift in (1.0, 2.0, 3.0)]
        paired = crossed_mean(equally_weighted(level_table(runs, floor)))
        assert paired.value == pytest.approx(2.0)
        assert paired.se == pytest.approx(1 / np.sqrt(3))

    def test_nothing_shared_is_not_crossed(self):
        assert level_table([(self.returns, self.levels), (self.returns, self.levels + 1000)]) is None
        assert level_table([(self.returns, self.levels[:0])]) is None

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
                LevelTable(np.ones((6, 3)), np.ones(3) / 3), LevelTable(np.ones((5, 3)), np.ones(3) / 3)
            )
