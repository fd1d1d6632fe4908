"""The variance parts of a contrast over runs crossed with levels, for any number of studies at once.

A runs x levels table has three sources of variance: runs, levels, and the residual of a run on a level. The variance
of the mean over runs, V_run, and that of the mean over levels, V_level, both contain the residual, so it is taken out
once. The parts keep their own degrees of freedom, which is what `components` needs.

References:
    Cornfield, J. and Tukey, J. W. (1956). Average values of mean squares in factorials. Annals of Mathematical
        Statistics 27, 907-949.
    Owen, A. B. (2007). The pigeonhole bootstrap. Annals of Applied Statistics 1, 386-411.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapfloor.statistics.conventions import Floats


@dataclass(frozen=True)
class LevelTable:
    """Mean returns of runs (second last axis) on the levels of one set (last axis), and of a reference on them."""

    values: Floats
    reference: Floats
    weights: Floats
    """Of the levels; they sum to one. Levels of weight zero are left out."""

    def minus(self, slope: Floats) -> Floats:
        """Values minus `slope` times the reference on the same level."""
        return self.values - (np.asarray(slope)[..., None] * self.reference)[..., None, :]


@dataclass(frozen=True)
class CrossedParts:
    """An estimate with the parts of its variance in the last axis: runs first, then the level sets."""

    estimate: Floats
    by_run: Floats
    variances: Floats
    dfs: Floats


def crossed_parts(sets: Sequence[tuple[float, Floats, Floats]]) -> CrossedParts:
    """The mean of sum(sign * values @ weights) over runs, with its variance for new runs on new levels.

    Args:
        sets: per level set its sign, values (..., runs, levels) and weights (..., levels). The runs keep their order.

    V_run is not taken below the residual that it contains, nor V_level below zero once the residual is out.
    """
    by_run = np.asarray(sum(sign * _by_run(values, weights) for sign, values, weights in sets))
    n = by_run.shape[-1]
    level_parts, residual, dfs = [], np.zeros(by_run.shape[:-1]), []
    for _, values, weights in sets:
        v_level, v_residual, effective = _set_parts(values, weights)
        level_parts.append(np.maximum(v_level - v_residual, 0.0))
        residual = residual + v_residual
        dfs.append(np.maximum(effective - 1, 1.0))
    v_run = np.maximum(by_run.var(axis=-1, ddof=1) / n, residual)
    return CrossedParts(
        estimate=by_run.mean(axis=-1),
        by_run=by_run,
        variances=np.stack([v_run, *level_parts], axis=-1),
        dfs=np.stack([np.full_like(v_run, n - 1), *dfs], axis=-1),
    )


def reference_slope(tables: Sequence[LevelTable]) -> Floats:
    """The slope of the runs' mean on a level on the reference's, pooled within level sets.

    It minimises the estimated variance that levels add to a contrast of the sets (a control variate, as in analysis
    of covariance). Zero where the reference does not vary over levels.
    """
    above = below = np.zeros(())
    for table in tables:
        mean = table.values.mean(axis=-2)
        y = mean - np.sum(table.weights * mean, axis=-1, keepdims=True)
        x = table.reference - np.sum(table.weights * table.reference, axis=-1, keepdims=True)
        above = above + np.sum(table.weights**2 * x * y, axis=-1)
        below = below + np.sum(table.weights**2 * x * x, axis=-1)
    return np.asarray(np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0))


def _by_run(values: Floats, weights: Floats) -> Floats:
    return np.asarray((values @ weights[..., None])[..., 0])


def _set_parts(values: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """V_level, V_residual and the effective number of levels of each study."""
    n = values.shape[-2]
    squares = np.sum(weights**2, axis=-1)
    by_level, by_run = values.mean(axis=-2), _by_run(values, weights)
    mean = by_run.mean(axis=-1)
    left = 1 - squares
    v_level = np.sum(weights**2 * (by_level - mean[..., None]) ** 2, axis=-1) / left
    residual = values - by_run[..., None] - (by_level - mean[..., None])[..., None, :]
    total = np.sum(weights[..., None, :] ** 2 * residual**2, axis=(-1, -2))
    return v_level, total / left / (n * (n - 1)), 1 / squares
