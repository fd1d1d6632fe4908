"""Robust summaries: interquartile mean, probability of improvement over the floor, performance profiles.

References:
    Agarwal, R. et al. (2021). Deep reinforcement learning at the edge of the statistical precipice. Advances in
    Neural Information Processing Systems, 34.
    Mann, H. B. & Whitney, D. R. (1947). On a test of whether one of two random variables is stochastically larger
    than the other. Annals of Mathematical Statistics, 18(1), 50-60.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.bootstrap import percentile_interval
from gapfloor.statistics.conventions import CONFIDENCE, N_RESAMPLES, THESE_LEVELS, Floats, Pair, finite_sample


@dataclass(frozen=True)
class PerformanceProfile:
    """IQM and performance profile of a suite; intervals resample runs within games."""

    iqm: float
    """Interquartile mean of the run scores of all games: the mean of the middle half."""
    iqm_ci: Pair
    """Its percentile bootstrap interval."""
    taus: tuple[float, ...]
    """The scores at which the profile is read."""
    profile: tuple[float, ...]
    """Fraction of runs with a score above each tau, games weighted equally."""
    profile_low: tuple[float, ...]
    """Lower end of the profile's interval at each tau."""
    profile_high: tuple[float, ...]
    """Upper end of the profile's interval at each tau."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""


def interquartile_mean(values: npt.ArrayLike, *, axis: int = -1) -> Floats:
    """Mean of what is left when a quarter (rounded down) is cut from each end.

    Equals `scipy.stats.trim_mean(values, 0.25)`.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64), axis=axis)
    n = ordered.shape[axis]
    cut = int(0.25 * n)
    return np.asarray(np.take(ordered, range(cut, n - cut), axis=axis).mean(axis=axis))


def _resampled(values: Floats, *, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Bootstrap samples of `values`, one per row."""
    picked: Floats = values[rng.integers(0, values.size, size=(n_resamples, values.size), dtype=np.int32)]
    return picked


def improvement_over(returns: npt.ArrayLike, floor_returns: npt.ArrayLike) -> float:
    """P(an episode of the policy beats one of the floor) + half of ties: Mann and Whitney's U / (n m)."""
    policy = finite_sample(returns, "returns")
    floor = finite_sample(floor_returns, "floor_returns")
    below = np.searchsorted(floor, policy, side="left")
    upto = np.searchsorted(floor, policy, side="right")
    return float((below + upto).sum() / (2 * policy.size * floor.size))


def performance_profile(
    scores_by_game: Sequence[npt.ArrayLike],
    *,
    taus: Sequence[float],
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    n_resamples: int = N_RESAMPLES,
) -> PerformanceProfile:
    """The fraction of runs above each tau, games weighted equally, and the IQM over all runs.

    With the same number of runs in every game both are rliable's; its IQM pools runs in the same way.
    """
    games = [finite_sample(scores, "scores_by_game") for scores in scores_by_game]
    # Many games with many runs would make a large array of resamples; a thousand rows show a band well.
    resampled = [_resampled(game, n_resamples=n_resamples, rng=rng) for game in games]
    points = np.asarray(taus, dtype=np.float64)
    drawn = np.zeros((n_resamples, points.size))
    for game in resampled:
        for i, tau in enumerate(points):
            drawn[:, i] += np.count_nonzero(game > tau, axis=1) / game.shape[1] / len(games)
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail), axis=0)
    profile = np.mean([(game[:, None] > points).mean(axis=0) for game in games], axis=0)
    iqm = interquartile_mean(np.concatenate(resampled, axis=1), axis=1)
    return PerformanceProfile(
        iqm=float(interquartile_mean(np.concatenate(games))),
        iqm_ci=percentile_interval(iqm, confidence=confidence),
        taus=tuple(float(tau) for tau in points),
        profile=tuple(float(x) for x in profile),
        profile_low=tuple(float(x) for x in low),
        profile_high=tuple(float(x) for x in high),
    )
