"""Means and differences of one checkpoint's episodes, with levels as the sample.

Two cells of one schedule hold the same episodes in the same places, so a difference is taken episode by episode and
its error over levels: what the levels have in common is gone, and episodes of one level count as one. The runs
are these runs; the levels are a sample of what the generator makes.

References:
    Liang, K.-Y. & Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika,
    73(1), 13-22.
"""

from __future__ import annotations

import numpy as np

from gapfloor.errors import UsageError
from gapfloor.statistics.clustered import clustered_sem
from gapfloor.statistics.conventions import CONFIDENCE, GENERATOR, NAN, Floats, Ints
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import t_estimate


def mean_by_level(returns: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean return, its error clustered by level."""
    n_levels = int(np.unique(levels).size)
    se = clustered_sem(returns, levels) if n_levels > 1 else NAN
    return _over_levels(float(np.mean(returns)), se, n_levels - 1, confidence)


def pair_by_level(a: Floats, b: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> Estimate:
    """A - b of two measurements on one schedule: `a[i]` and `b[i]` were played on `levels[i]`."""
    if not len(a) == len(b) == len(levels):
        raise UsageError(
            f"`a`, `b` and `levels` must hold the same episodes, but have {len(a)}, {len(b)} and {len(levels)}."
        )
    return mean_by_level(np.asarray(a) - np.asarray(b), levels, confidence=confidence)


def independent_difference(a: Estimate, b: Estimate, *, confidence: float = CONFIDENCE) -> Estimate:
    """A - b on different levels, as a gap is: variances add, with Satterthwaite's df."""
    se = float(np.hypot(a.se, b.se))
    df = float(satterthwaite((a.se**2, b.se**2), (a.df, b.df)))
    return _over_levels(a.value - b.value, se, df, confidence)


def _over_levels(value: float, se: float, df: float, confidence: float) -> Estimate:
    return t_estimate(value, se, float(df), confidence=confidence, estimand=GENERATOR, method="over levels")
