"""Limits of an interval that are moved outwards where skewed run values would make them too short.

Student's interval of right-skewed values misses the true mean above it: a sample without its long tail has a small
mean and a small standard deviation at once. Where right skew cannot be ruled out (`skewness`), the upper limit takes
the runs' degrees of freedom for the whole error and adds the first term of the Cornish-Fisher expansion of t,

    half + k / (6 V) + k half^2 / (3 V^2),

with V the variance of the estimate, k = skewness * V_runs^1.5 / sqrt(n) its third cumulant, and `half` Student's
half-width. This is Johnson's modified t, solved for the mean to first order. The skewness is the average over the games
of a family, because one sample of six runs says little about it. The lower limit is treated in the same way where left
skew is established. A limit is never moved inwards, so no interval covers less than without the correction; and the
correction at most doubles the half-width, because the expansion is not meant for the far quantiles of very few runs.

References:
    Johnson, N. J. (1978). Modified t tests and confidence intervals for asymmetrical populations. Journal of the
        American Statistical Association 73, 536-544.
    Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power approach. Journal of
        Pharmacokinetics and Biopharmaceutics 15, 657-680.
    Hall, P. (1992). On the removal of skewness by transformation. Journal of the Royal Statistical Society B 54,
        221-228.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.statistics.components import VariancePart, components_p, reach
from gapfloor.statistics.conventions import NAN, NO_PAIR, Floats, Pair
from gapfloor.statistics.skewness import Skewness
from gapfloor.statistics.welch import two_sided_p


@dataclass(frozen=True)
class WidenedLimits:
    """By which skewness each limit is moved outwards; None where it is not."""

    lower: float | None = None
    upper: float | None = None


#: Banerjee's interval as it is.
NOT_WIDENED = WidenedLimits()


def widened_limits(skewness: Skewness, run_values: npt.ArrayLike) -> WidenedLimits:
    """The limits that the shape of a family's run values, or of these, does not allow to be short."""
    found = 0.0 if math.isnan(skewness.adjusted) else skewness.adjusted
    return WidenedLimits(
        lower=max(-found, 0.0) if skewness.doubts(1.0, run_values) else None,
        upper=max(found, 0.0) if skewness.doubts(-1.0, run_values) else None,
    )


def skewed_reach(
    variances: npt.ArrayLike, *, df: float, n: int, skewness: npt.ArrayLike, alpha: npt.ArrayLike
) -> Floats:
    """The distance of a widened limit from the estimate at two-sided 1 - alpha.

    Args:
        variances: the parts of the variance in the last axis, the reference's last.
        df: the smallest degrees of freedom of the parts.
        n: runs.
        skewness: of run values in the direction of the limit, at least zero.
        alpha: the two-sided level, broadcast against what remains without the last axis.

    >>> round(float(skewed_reach([0.25, 0.0], df=5, n=6, skewness=0.0, alpha=0.05)), 4)  # Student's
    1.2853
    """
    linear, square = _correction(variances, n=n, skewness=skewness)
    total = np.asarray(variances, dtype=np.float64).sum(axis=-1)
    half = np.sqrt(total) * -special.stdtrit(df, np.asarray(alpha, dtype=np.float64) / 2)
    return np.asarray(half + np.minimum(linear + square * half**2, half))


def limits(
    estimate: float, parts: Sequence[VariancePart], widened: WidenedLimits, *, n: int, alpha: float
) -> Pair:
    """Banerjee's interval at 1 - alpha with its widened limits; NaN where a part is not known."""
    if any(math.isnan(part.variance) for part in parts):
        return NO_PAIR
    ends = [_reach(parts, skewness, n=n, alpha=alpha) for skewness in (widened.lower, widened.upper)]
    return estimate - ends[0], estimate + ends[1]


def limits_p(estimate: float, parts: Sequence[VariancePart], widened: WidenedLimits, *, n: int) -> float:
    """The two-sided p: the alpha at which the interval just reaches zero."""
    skewness = widened.lower if estimate > 0 else widened.upper
    p = components_p(estimate, parts)
    if skewness is None or math.isnan(p) or not any(part.variance > 0 for part in parts):
        return p
    variances = [part.variance for part in parts]
    linear, square = (float(term) for term in _correction(variances, n=n, skewness=skewness))
    room = max(abs(estimate) - linear, 0.0)
    # The root of square * half^2 + half = room, without cancellation where square is small; or a doubled half-width.
    half = max(2 * room / (1 + math.sqrt(1 + 4 * square * room)), abs(estimate) / 2)
    return max(p, float(two_sided_p(half / math.sqrt(sum(variances)), _smallest_df(parts))))


def limits_tost(
    estimate: float, parts: Sequence[VariancePart], widened: WidenedLimits, *, n: int, margin: float
) -> float:
    """The p of two one-sided tests (Schuirmann) against -margin and +margin, each with the limit on its side."""
    if math.isnan(estimate) or any(math.isnan(part.variance) for part in parts):
        return NAN

    def beyond(difference: float, sign: int) -> float:
        """The p of "the difference does not have this sign"."""
        p = limits_p(difference, parts, widened, n=n)
        return p / 2 if sign * difference > 0 else 1 - p / 2

    return max(beyond(estimate - margin, -1), beyond(estimate + margin, 1))


def _reach(parts: Sequence[VariancePart], skewness: float | None, *, n: int, alpha: float) -> float:
    if skewness is None or not any(part.variance > 0 for part in parts):
        return reach(parts, alpha=alpha)
    variances = [part.variance for part in parts]
    return float(skewed_reach(variances, df=_smallest_df(parts), n=n, skewness=skewness, alpha=alpha))


def _smallest_df(parts: Sequence[VariancePart]) -> float:
    return min(part.df for part in parts)


def _correction(variances: npt.ArrayLike, *, n: int, skewness: npt.ArrayLike) -> tuple[Floats, Floats]:
    """What is added to the half-width: a constant, and the factor of its square."""
    parts = np.asarray(variances, dtype=np.float64)
    total = parts.sum(axis=-1)
    third = np.asarray(skewness) * parts[..., :-1].sum(axis=-1) ** 1.5 / math.sqrt(n)
    return np.asarray(third / (6 * total)), np.asarray(third / (3 * total**2))
