"""Simulated families of floor comparisons: how often each game is called, by either method, after Holm.

With all deltas 0 the rate of any rejection is the family-wise error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.statistics.conventions import ALPHA, Floats
from gapfloor.statistics.families import holm
from gapfloor.statistics.power import Effect, variance_parts
from gapfloor.statistics.welch import welch


def squared_reach(variances: npt.ArrayLike, dfs: npt.ArrayLike, alpha: npt.ArrayLike) -> Floats:
    """The squared half-width of Banerjee's interval at 1 - alpha, summed over the last axis.

    Args:
        variances: the parts of the variance, in the last axis.
        dfs: their degrees of freedom, broadcast against `variances`.
        alpha: the two-sided level, broadcast against what remains without the last axis.
    """
    level = np.asarray(alpha, dtype=np.float64)[..., None]
    quantile = special.stdtrit(np.asarray(dfs, dtype=np.float64), 1 - level / 2)
    return np.asarray(np.sum(np.asarray(variances) * quantile**2, axis=-1), dtype=np.float64)


@dataclass(frozen=True)
class FamilyPower:
    """How often each game of a family was called, with the Monte Carlo error."""

    rejected: tuple[float, ...]
    any_rejected: float
    error: float
    """Largest Monte Carlo standard error of the rates."""


def simulate_paper_family(
    effects: Sequence[Effect],
    *,
    n_runs: Sequence[int],
    n_floor: int,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    n_simulations: int = 2000,
) -> FamilyPower:
    """The paper's calls: normal run values and floor means, Welch's test, Holm."""
    p = np.empty((n_simulations, len(effects)))
    for i, (effect, n) in enumerate(zip(effects, n_runs, strict=True)):
        runs = _mean_and_variance(effect.delta, effect.run_sd, n, n_simulations, rng)
        floor = _mean_and_variance(0.0, effect.floor_sd, n_floor, n_simulations, rng)
        p[:, i] = welch(runs[0], runs[1], n, floor[0], floor[1], n_floor).p
    return _rates(np.array([holm(row) < alpha for row in p]))


def simulate_recommended_family(
    effects: Sequence[Effect],
    *,
    n_runs: Sequence[int],
    n_floor: int,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    n_simulations: int = 2000,
) -> FamilyPower:
    """The recommended calls: normal run values and floor means, Banerjee's test, Holm."""
    parts_of = [
        variance_parts(one, n_runs=n, n_floor=n_floor) for one, n in zip(effects, n_runs, strict=True)
    ]
    true = np.array([variances for variances, _ in parts_of])
    dfs = np.array([df for _, df in parts_of])
    size = (n_simulations, len(effects))
    estimate = np.array([one.delta for one in effects]) + rng.standard_normal(size) * np.sqrt(
        true.sum(axis=-1)
    )
    parts = true * rng.chisquare(dfs, (*size, dfs.shape[-1])) / dfs
    rejected = np.zeros(size, dtype=bool)
    while True:
        # Holm: with k games rejected the others are tested at alpha / (m - k).
        left = np.maximum(len(effects) - rejected.sum(axis=-1), 1)
        level = alpha / left[:, None]
        reached = np.where(
            estimate < 0,
            squared_reach(parts, dfs.min(axis=-1, keepdims=True), level),
            squared_reach(parts, dfs, level),
        )
        new = ~rejected & (estimate**2 > reached)
        if not new.any():
            return _rates(rejected)
        rejected |= new


def _rates(rejected: npt.NDArray[np.bool_]) -> FamilyPower:
    """The rates of simulated families: one row per family, one column per game."""
    rates = rejected.mean(axis=0)
    overall = float(rejected.any(axis=1).mean())
    worst = max(max(rate * (1 - rate) for rate in rates), overall * (1 - overall))
    return FamilyPower(tuple(float(rate) for rate in rates), overall, math.sqrt(worst / rejected.shape[0]))


def _mean_and_variance(
    mean: float, sd: float, n: int, size: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Sample means and variances of normal samples, which are independent of each other."""
    means = mean + sd / math.sqrt(n) * rng.standard_normal(size)
    return means, sd**2 * rng.chisquare(n - 1, size) / (n - 1)
