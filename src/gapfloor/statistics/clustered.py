"""Episodes grouped by level: the error of a mean where levels are a sample of a generator's, and where they are given.

A greedy episode is a function of its level, so 384 episodes on 100 levels are not 384 observations of the generator:
errors for new levels are clustered by level. Two cells of one schedule hold the same episodes in the same places, so
their difference is taken episode by episode, and what levels do to both is gone. In a census every level is played
equally often; its mean is about these levels, and only the chance within levels makes an error.

References:
    Liang, K.-Y. & Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika,
    73(1), 13-22.
    Cochran, W. G. (1977). Sampling Techniques, 3rd ed. Wiley, ch. 5 (census).
    Searle, S. R., Casella, G. & McCulloch, C. E. (1992). Variance Components. Wiley, ch. 3 (level_variance_share).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import CONFIDENCE, GENERATOR, NAN, Floats, Ints
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.welch import satterthwaite, t_estimate

_OVER_LEVELS = {"estimand": GENERATOR, "method": "over levels"}


class ByLevel(NamedTuple):
    """What was played on each level, in the order of level seeds."""

    levels: Ints
    counts: Ints
    sums: Floats
    """Sum of returns."""
    place: Ints
    """For each episode, the place of its level."""

    @property
    def means(self) -> Floats:
        """Mean return on each level."""
        return self.sums / self.counts


def by_level(returns: npt.ArrayLike, levels: npt.ArrayLike) -> ByLevel:
    """Episodes grouped by their levels.

    >>> by_level([1.0, 3.0, 5.0, 5.0], [7, 7, 2, 2]).means.tolist()
    [5.0, 2.0]
    """
    found, place, counts = np.unique(np.asarray(levels), return_inverse=True, return_counts=True)
    sums: Floats = np.bincount(place, weights=np.asarray(returns, dtype=np.float64)).astype(np.float64)
    return ByLevel(found, counts, sums, place)


def within_level_sample(returns: npt.ArrayLike, levels: npt.ArrayLike) -> Floats:
    """A sample with the census's mean whose spread is the one within levels alone.

    Each level's deviations are widened so that the sample's variance (ddof=1) is the pooled variance within levels:
    tests and bootstraps for independent episodes then use the census's own error. With one episode per level the
    returns themselves are given, whose spread is too wide rather than too narrow.
    """
    values, grouped = np.asarray(returns, dtype=np.float64), by_level(returns, levels)
    if (grouped.counts < 2).any():
        return values
    widened = np.sqrt((values.size - 1) / (values.size - grouped.counts.size))
    sample: Floats = values.mean() + (values - grouped.means[grouped.place]) * widened
    return sample


def clustered_sem(returns: Floats, levels: Ints) -> float:
    """Standard error of a mean of episodes clustered by level; NaN for fewer than two levels.

    Equals the cluster-robust error of a regression on a constant with the G/(G-1) correction.
    """
    sums = by_level(np.asarray(returns) - np.mean(returns), levels).sums
    if sums.size < 2:
        return NAN
    return float(np.sqrt(sums.size / (sums.size - 1) * np.sum(sums**2)) / len(returns))


def level_variance_share(runs: Sequence[tuple[Floats, Ints]]) -> float:
    """Between-level over total variance of a run's episodes (one-way moments), averaged over runs.

    1 for a policy whose return is a function of the level; NaN where no level was played twice.
    """
    between, within = [], []
    for returns, levels in runs:
        _, counts, sums, _ = by_level(returns, levels)
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


def mean_by_level(returns: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean return of one checkpoint on new levels, its error clustered by level."""
    error, df = clustered_sem(returns, levels), float(np.unique(levels).size - 1)
    return t_estimate(float(np.mean(returns)), error, df, confidence=confidence, **_OVER_LEVELS)


def pair_by_level(a: Floats, b: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> Estimate:
    """A - b of two measurements on one schedule: `a[i]` and `b[i]` were played on `levels[i]`."""
    if not len(a) == len(b) == len(levels):
        raise UsageError(
            f"`a`, `b` and `levels` must hold the same episodes, but have {len(a)}, {len(b)} and {len(levels)}."
        )
    return mean_by_level(np.asarray(a) - np.asarray(b), levels, confidence=confidence)


def independent_difference(a: Estimate, b: Estimate, *, confidence: float = CONFIDENCE) -> Estimate:
    """A - b on different levels, as a gap is: variances add, with Satterthwaite's df."""
    df = float(satterthwaite((a.se**2, b.se**2), (a.df, b.df)))
    return t_estimate(
        a.value - b.value, float(np.hypot(a.se, b.se)), df, confidence=confidence, **_OVER_LEVELS
    )
