"""Means and differences of one checkpoint's episodes, with levels as the sample.

Two cells of one schedule hold the same episodes in the same places, so a difference is taken episode by episode and
its error over levels: what the levels have in common is gone, and episodes of one level count as one. The runs
are these runs; the levels are a sample of what the generator makes.

References:
    Liang, K.-Y. & Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika,
    73(1), 13-22.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gapfloor.errors import UsageError
from gapfloor.statistics.clustered import clustered_sem
from gapfloor.statistics.conventions import CONFIDENCE, GENERATOR, NAN, NO_PAIR, Floats, Ints, Pair
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import t_interval, t_statistic, two_sided_p


@dataclass(frozen=True)
class LevelContrast:
    """A mean over levels (of returns, or of differences) with its standard error over levels."""

    value: float
    """The mean over levels."""
    se: float
    """Standard error."""
    df: float
    """Its degrees of freedom."""
    p: float
    """Two-sided, of a value of zero."""
    interval: Pair
    """95% interval."""
    n_levels: int
    """Distinct levels played."""
    n_episodes: int
    """Counted episodes."""
    estimand: str = GENERATOR
    """What the number is about: these levels, or the generator of levels."""


def mean_by_level(returns: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> LevelContrast:
    """The mean return, its error clustered by level."""
    value, n_levels = float(np.mean(returns)), int(np.unique(levels).size)
    se, df = clustered_sem(returns, levels), float(n_levels - 1)
    if n_levels < 2:
        return LevelContrast(value, NAN, NAN, NAN, NO_PAIR, n_levels, len(returns))
    return _contrast(value, se, df, n_levels, len(returns), confidence=confidence)


def pair_by_level(a: Floats, b: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> LevelContrast:
    """A - b of two measurements on one schedule: `a[i]` and `b[i]` were played on `levels[i]`."""
    if not len(a) == len(b) == len(levels):
        raise UsageError(
            f"`a`, `b` and `levels` must hold the same episodes, but have {len(a)}, {len(b)} and {len(levels)}."
        )
    return mean_by_level(np.asarray(a) - np.asarray(b), levels, confidence=confidence)


def independent_difference(
    a: LevelContrast, b: LevelContrast, *, confidence: float = CONFIDENCE
) -> LevelContrast:
    """A - b on different levels, as a gap is: variances add, with Satterthwaite's df."""
    parts, value = (a.se**2, b.se**2), a.value - b.value
    n_levels, n_episodes = a.n_levels + b.n_levels, a.n_episodes + b.n_episodes
    if not np.isfinite(parts).all():
        return LevelContrast(value, NAN, NAN, NAN, NO_PAIR, n_levels, n_episodes)
    df = float(satterthwaite(parts, (a.df, b.df)))
    return _contrast(value, float(np.sqrt(sum(parts))), df, n_levels, n_episodes, confidence=confidence)


def _contrast(
    value: float, se: float, df: float, n_levels: int, n_episodes: int, *, confidence: float
) -> LevelContrast:
    p = float(two_sided_p(t_statistic(value, se), df))
    interval = t_interval(value, se, df, confidence=confidence)
    return LevelContrast(value, se, df, p, interval, n_levels, n_episodes)
