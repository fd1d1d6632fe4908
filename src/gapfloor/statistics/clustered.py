"""Standard errors for the generator of levels: levels are a sample too, and episodes on one level repeat it.

A greedy episode is a function of its level, so 384 episodes on 100 levels are not 384 observations of the
generator. The crossed estimator is the two-way moment estimator V_run + V_level - V_residual with
Satterthwaite's df.

References:
    Liang, K.-Y. & Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika,
    73(1), 13-22.
    Cameron, A. C., Gelbach, J. B. & Miller, D. L. (2011). Robust inference with multiway clustering. Journal of
    Business & Economic Statistics, 29(2), 238-249.
    Searle, S. R., Casella, G. & McCulloch, C. E. (1992). Variance Components. Wiley, ch. 3 (level_variance_share).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import CONFIDENCE, GENERATOR, NAN, Floats, Ints
from gapfloor.statistics.distinct import distinct, places
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import t_estimate


@dataclass(frozen=True)
class LevelMatrix:
    """Mean return of every run (row) on every level (column), with the levels' weights (sum 1)."""

    values: Floats
    weights: Floats


def clustered_sem(returns: Floats, levels: Ints) -> float:
    """Standard error of a mean of episodes clustered by level; NaN for fewer than two levels.

    Equals the cluster-robust error of a regression on a constant with the G/(G-1) correction.
    """
    sums, _ = _by_level(np.asarray(returns) - np.mean(returns), levels)
    if sums.size < 2:
        return NAN
    return float(np.sqrt(sums.size / (sums.size - 1) * np.sum(sums**2)) / len(returns))


def level_matrix(
    runs: Sequence[tuple[Floats, Ints]],
    *,
    floor: tuple[Floats, Ints] | None = None,
    equal_weights: bool = False,
) -> LevelMatrix | None:
    """Returns by run and level, minus the floor's on the same level if one is given.

    Args:
        runs: per run its episode returns and level seeds.
        floor: the floor's episode returns and level seeds.
        equal_weights: weigh levels equally instead of by how often they were played.

    None when fewer than two levels were played by every run (and by the floor).
    """
    samples = [*runs, floor] if floor is not None else list(runs)
    if not runs or any(levels.size == 0 for _, levels in samples):
        return None
    shared = distinct(samples[0][1])
    for _, levels in samples[1:]:
        shared = np.intersect1d(shared, distinct(levels), assume_unique=True)
    if shared.size < 2:
        return None
    rows, counts = zip(*(_level_means(returns, levels, shared) for returns, levels in runs), strict=True)
    values = np.array(rows)
    if floor is not None:
        values = values - _level_means(*floor, shared)[0]
    weights = np.ones(shared.size) if equal_weights else np.mean(counts, axis=0)
    return LevelMatrix(values, weights / weights.sum())


def crossed_mean(matrix: LevelMatrix, *, confidence: float = CONFIDENCE) -> Estimate:
    """The weighted mean of a runs x levels matrix, with its crossed standard error."""
    return _crossed([matrix], [1.0], confidence=confidence)


def crossed_gap(train: LevelMatrix, test: LevelMatrix, *, confidence: float = CONFIDENCE) -> Estimate:
    """Train - test of the same runs (same row order), levels of both sets sampled independently."""
    if train.values.shape[0] != test.values.shape[0]:
        raise UsageError(
            f"`train` and `test` must hold the same runs, but have {train.values.shape[0]} and "
            f"{test.values.shape[0]}."
        )
    return _crossed([train, test], [1.0, -1.0], confidence=confidence)


def level_variance(by_level: Floats, weights: Floats) -> float:
    """What the choice of levels adds to the variance of a weighted mean of level means."""
    squares = float(np.sum(weights**2))
    return float(np.sum(weights**2 * (by_level - by_level @ weights) ** 2) / (1 - squares))


def residual_variance(values: Floats, weights: Floats) -> float:
    """What the residuals of a run on a level add to the variance of the mean; 0 for a single run."""
    n_runs = values.shape[0]
    if n_runs < 2:
        return 0.0
    by_level, by_run = values.mean(axis=0), values @ weights
    residual = values - by_run[:, None] - by_level[None, :] + by_level @ weights
    squares = float(np.sum(weights**2))
    return float(np.sum(weights**2 * residual**2) / (1 - squares) / (n_runs * (n_runs - 1)))


def level_variance_share(runs: Sequence[tuple[Floats, Ints]]) -> float:
    """Between-level over total variance of a run's episodes (one-way moments), averaged over runs.

    1 for a policy whose return is a function of the level; NaN where no level was played twice.
    """
    between, within = [], []
    for returns, levels in runs:
        sums, counts = _by_level(returns, levels)
        n, groups = returns.size, counts.size
        if groups < 2 or n == groups:
            continue
        inside = (np.sum(returns**2) - np.sum(sums**2 / counts)) / (n - groups)
        outside = (np.sum(sums**2 / counts) - returns.sum() ** 2 / n) / (groups - 1)
        size = (n - np.sum(counts**2) / n) / (groups - 1)
        between.append((outside - inside) / size)
        within.append(inside)
    total = float(np.sum(between) + np.sum(within)) if between else 0.0
    return float(np.clip(np.sum(between) / total, 0, 1)) if total > 0 else NAN


def _crossed(matrices: Sequence[LevelMatrix], signs: Sequence[float], *, confidence: float) -> Estimate:
    """V_run + V_level - V_residual: the error of a mean for new runs on new levels; unknown for a single run."""
    n_runs = matrices[0].values.shape[0]
    by_run = sum(sign * (m.values @ m.weights) for m, sign in zip(matrices, signs, strict=True))
    stated: dict[str, Any] = {"confidence": confidence, "estimand": GENERATOR, "method": "runs x levels"}
    if n_runs < 2:
        return Estimate(value=float(np.mean(by_run)), **stated)
    v_run = float(np.var(by_run, ddof=1) / n_runs)
    v_level = v_residual = 0.0
    sources: list[tuple[float, float]] = []
    for m in matrices:
        level, residual = (
            level_variance(m.values.mean(axis=0), m.weights),
            residual_variance(m.values, m.weights),
        )
        df = 1 / float(np.sum(m.weights**2)) - 1
        sources += [(level, df), (residual, (n_runs - 1) * df)]
        v_level, v_residual = v_level + level, v_residual + residual
    # Both V_run and V_level contain the residual: subtracting it may not leave less than either.
    variance = max(v_run + v_level - v_residual, v_run, v_level)
    variances, dfs = zip(*sources, (v_run, n_runs - 1), strict=True)
    df = float(satterthwaite(variances, dfs, total=variance, without_variance=n_runs - 1))
    return t_estimate(float(np.mean(by_run)), float(np.sqrt(variance)), df, **stated)


def _by_level(returns: Floats, levels: Ints) -> tuple[Floats, Floats]:
    """Sum of returns and number of episodes per level."""
    _, place = places(levels)
    sums = np.bincount(place, weights=np.asarray(returns, dtype=np.float64)).astype(np.float64)
    return sums, np.bincount(place).astype(np.float64)


def _level_means(returns: Floats, levels: Ints, shared: Ints) -> tuple[Floats, Floats]:
    found, place = places(levels)
    sums, counts = np.bincount(place, weights=returns), np.bincount(place).astype(np.float64)
    keep = np.searchsorted(found, shared)
    return sums[keep] / counts[keep], counts[keep]
