"""Tests and intervals for an estimate whose variance is a sum of independent parts, each with its own df.

A comparison of a few runs with a floor of many episodes has two parts: the runs' (n - 1 degrees of freedom) and the
floor's (hundreds). Welch's test gives the sum one estimated df, and its size reaches four times the nominal one with
three runs at Holm's first step. Banerjee's interval has half-width sqrt(t_1^2 V_1 + t_2^2 V_2 + ...), where t_i is
Student's quantile at the df of part i. For normal data its coverage is never below the nominal one, and it is never
wider than the interval that takes the smallest df for the whole sum.

References:
    Banerjee, S. K. (1960). Approximate confidence interval for linear functions of means of k populations when
        the population variances are not equal. Sankhya 22, 357-358.
    Welch, B. L. (1947). The generalization of "Student's" problem when several different population variances are
        involved. Biometrika 34, 28-35.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from gapfloor.statistics.conventions import NAN, NO_PAIR, Pair
from gapfloor.statistics.welch import two_sided_p

#: A p below this is not resolved further: the quantile of Student's t at it overflows for few degrees of freedom.
_SMALLEST_P = 1e-200


@dataclass(frozen=True)
class VariancePart:
    """One independent part of the variance of an estimate, with its degrees of freedom."""

    variance: float
    df: float


def reach(parts: Sequence[VariancePart], *, alpha: float) -> float:
    """The half-width of Banerjee's two-sided interval at 1 - alpha.

    With one part it is Student's:

    >>> round(reach([VariancePart(0.25, 5)], alpha=0.05), 4)  # 0.5 * scipy.stats.t.isf(0.025, 5)
    1.2853
    """
    known = [part for part in parts if part.variance > 0]
    if not known:
        return 0.0
    # The lower tail keeps its digits where 1 - alpha / 2 rounds to one. With one degree of freedom a square overflows.
    return math.hypot(*(math.sqrt(part.variance) * _quantile(part.df, alpha) for part in known))


def components_interval(estimate: float, parts: Sequence[VariancePart], *, alpha: float) -> Pair:
    """Banerjee's interval at 1 - alpha; NaN where a part is not known."""
    if any(math.isnan(part.variance) for part in parts):
        return NO_PAIR
    half = reach(parts, alpha=alpha)
    return estimate - half, estimate + half


def components_p(estimate: float, parts: Sequence[VariancePart]) -> float:
    """The two-sided p: the alpha at which Banerjee's interval just reaches zero.

    It lies between Student's p of the same t at the smallest and at the largest df. Without any variance the estimate
    is known: p is 1 for zero and 0 for anything else.
    """
    if math.isnan(estimate) or any(math.isnan(part.variance) for part in parts):
        return NAN
    known = [part for part in parts if part.variance > 0]
    if not known:
        return float(estimate == 0)
    if estimate == 0:
        return 1.0
    t = estimate / math.sqrt(sum(part.variance for part in known))
    bounds = sorted(float(two_sided_p(t, part.df)) for part in known)
    low, high = max(bounds[0], _SMALLEST_P), max(bounds[-1], _SMALLEST_P)
    if high <= low * (1 + 1e-12):
        return bounds[-1]

    # `reach` in plain numbers: the search calls it about ten times.
    scales = [(math.sqrt(part.variance), part.df) for part in known]
    wanted = abs(estimate)

    def lacking(log_p: float) -> float:
        alpha = math.exp(log_p)
        return math.hypot(*[scale * _quantile(df, alpha) for scale, df in scales]) - wanted

    a, b = math.log(low), math.log(high)
    if lacking(a) <= 0:
        return low
    if lacking(b) >= 0:
        return high
    from scipy import optimize  # a sixth of what a command imports, and few need it

    return math.exp(float(optimize.brentq(lacking, a, b, xtol=1e-13, rtol=1e-14)))


def _quantile(df: float, alpha: float) -> float:
    return -float(special.stdtrit(df, alpha / 2))
