"""The floor-excess gap: the gap without the difference between the level sets that random play shows too.

References:
    Satterthwaite, F. E. (1946); see `satterthwaite`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import (
    CONFIDENCE,
    NAN,
    NO_PAIR,
    THESE_LEVELS,
    Pair,
    finite_sample,
)
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import t_interval, two_sided_p


@dataclass(frozen=True)
class Excess:
    """gap - floor gap."""

    estimate: float = NAN
    """The mean gap over runs minus the floor's own gap."""
    se: float = NAN
    """Standard error: over runs, and over the floor's episodes."""
    df: float = NAN
    """Its degrees of freedom (Satterthwaite)."""
    p: float = NAN
    """Two-sided p of an excess of zero."""
    interval: Pair = NO_PAIR
    """Student's interval."""
    floor_gap: float = NAN
    """The floor's own train - test difference on the same draws."""
    floor_gap_se: float = NAN
    """Per-episode standard error of `floor_gap`."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""


def floor_excess_gap(
    gaps: npt.ArrayLike,
    floor_train: npt.ArrayLike,
    floor_test: npt.ArrayLike,
    *,
    confidence: float = CONFIDENCE,
) -> Excess:
    """The mean gap over runs minus the floor's own, with Satterthwaite's df over the three samples."""
    runs = finite_sample(gaps, "gaps")
    train = finite_sample(floor_train, "floor_train", minimum=2)
    test = finite_sample(floor_test, "floor_test", minimum=2)
    floor_gap = float(train.mean() - test.mean())
    excess = float(runs.mean()) - floor_gap
    parts = [x.var(ddof=1) / x.size for x in (train, test)]
    floor_se = float(np.sqrt(sum(parts)))
    if runs.size < 2:
        return Excess(excess, floor_gap=floor_gap, floor_gap_se=floor_se)
    parts.append(runs.var(ddof=1) / runs.size)
    df = float(satterthwaite(parts, [train.size - 1, test.size - 1, runs.size - 1]))
    se = float(np.sqrt(sum(parts)))
    p = float(two_sided_p(excess / se, df)) if se > 0 else NAN
    return Excess(excess, se, df, p, t_interval(excess, se, df, confidence=confidence), floor_gap, floor_se)
