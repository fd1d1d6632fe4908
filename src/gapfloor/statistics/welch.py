"""Welch's test from the means, variances and sizes of two samples, and what else Student's t is used for.

Floor comparisons, agent differences and per-run gap tests share one standard error and one df, and the equivalence
test reuses both.

References:
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components. Biometrics
    Bulletin, 2(6), 110-114.
    Welch, B. L. (1947). The generalization of "Student's" problem when several different population variances are
    involved. Biometrika, 34(1-2), 28-35.
    Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power approach for assessing
    the equivalence of average bioavailability. Journal of Pharmacokinetics and Biopharmaceutics, 15(6), 657-680.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.statistics.conventions import ALPHA, NAN, Estimate, Floats, Pair


@dataclass(frozen=True)
class WelchTest:
    """Welch's test of two samples."""

    difference: float
    """Mean of the first minus mean of the second."""
    se: float
    """Standard error of `difference`."""
    t: float
    """Welch's t statistic."""
    df: float
    """Its degrees of freedom (Satterthwaite)."""
    p: float
    """Two-sided p."""


class Moments(NamedTuple):
    """What Welch's test needs to know of a sample."""

    mean: float
    variance: float
    """NaN for one value."""
    n: int

    @property
    def sem(self) -> float:
        """Standard error of the mean."""
        return math.sqrt(self.variance) / math.sqrt(self.n)


def moments(sample: Floats) -> Moments:
    """The moments of a sample (sorted by the caller)."""
    variance = float(sample.var(ddof=1)) if sample.size > 1 else NAN
    return Moments(float(sample.mean()), variance, sample.size)


def welch_of_moments(a: Moments, b: Moments) -> WelchTest:
    """Welch's t of a - b; equals `scipy.stats.ttest_ind(a, b, equal_var=False)`. NaN where a sample has one value.

    Two constant samples have no standard error: equal means then give t = 0 and p = 1, others p = 0.

    >>> a, b = moments(np.array([1.0, 2.0, 3.0])), moments(np.array([4.0, 6.0]))
    >>> round(welch_of_moments(a, b).t, 3)
    -2.598
    """
    difference = a.mean - b.mean
    parts = (a.variance / a.n, b.variance / b.n)
    square = parts[0] + parts[1]
    if math.isnan(square):
        return WelchTest(difference, NAN, NAN, NAN, NAN)
    se = math.sqrt(square)
    if not square:
        t, df = (math.inf * difference if difference else 0.0), float(a.n - 1 + b.n - 1)
    else:
        below = sum(part * part / (n - 1) for part, n in zip(parts, (a.n, b.n), strict=True) if part > 0)
        t = difference / se
        df = square**2 / below if below > 0 else float(a.n - 1 + b.n - 1)
    # `two_sided_p` without its conversions, which take longer than the number itself.
    return WelchTest(difference, se, t, df, float(2 * special.stdtr(df, -abs(t))))


def satterthwaite(
    parts: Sequence[npt.ArrayLike],
    dfs: Sequence[npt.ArrayLike],
    *,
    total: npt.ArrayLike | None = None,
    without_variance: npt.ArrayLike | None = None,
) -> Floats:
    """Degrees of freedom of a sum of independent variance estimates, (sum v_i)^2 / sum(v_i^2 / df_i).

    Args:
        parts: the variances v_i, each a number or an array.
        dfs: the degrees of freedom of each.
        total: the variance whose df is wanted, where it is not the sum of all parts (an estimator may subtract one).
        without_variance: the answer where every part is 0 (default: the sum of `dfs`).

    >>> float(satterthwaite([0.5, 0.5], [4, 4]))
    8.0
    """
    variances = [np.asarray(part, dtype=np.float64) for part in parts]
    whole = sum(variances) if total is None else np.asarray(total, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A part of 0 adds nothing, even where its df is 0 too.
        terms = [
            np.where(part > 0, part**2 / np.asarray(df), 0.0) for part, df in zip(variances, dfs, strict=True)
        ]
        below = sum(terms)
        found = whole**2 / below
    otherwise = sum(np.asarray(df, dtype=np.float64) for df in dfs)
    if without_variance is not None:
        otherwise = np.asarray(without_variance, dtype=np.float64)
    return np.where(np.asarray(below) > 0, found, otherwise)


def two_sided_p(t: npt.ArrayLike, df: npt.ArrayLike) -> Floats:
    """P(|T| >= |t|), from the tail itself so that tiny values keep their digits."""
    return np.asarray(2 * special.stdtr(df, -np.abs(np.asarray(t, dtype=np.float64))))


def t_statistic(estimate: float, se: float) -> float:
    """Estimate / se; without any error 0 for an estimate of 0 and infinite for others; NaN where `se` is unknown."""
    if math.isnan(se):
        return NAN
    if se > 0:
        return estimate / se
    return math.copysign(math.inf, estimate) if estimate else 0.0


def t_interval(estimate: float, se: float, df: float, *, confidence: float) -> Pair:
    """Student's interval: estimate -+ t quantile * se."""
    reach = float(special.stdtrit(df, (1 + confidence) / 2)) * se
    return float(estimate - reach), float(estimate + reach)


def t_estimate(
    value: float, se: float, df: float, *, confidence: float, estimand: str, method: str
) -> Estimate:
    """An estimate with Student's interval and its two-sided p; NaN where the standard error is unknown."""
    if math.isnan(se):
        return Estimate(value=value, confidence=confidence, estimand=estimand, method=method)
    low, high = t_interval(value, se, df, confidence=confidence)
    return Estimate(
        value=value, se=se, df=df, low=low, high=high, confidence=confidence,
        p=float(two_sided_p(t_statistic(value, se), df)), estimand=estimand, method=method,
    )  # fmt: skip


def equivalence_p(
    difference: npt.ArrayLike, se: npt.ArrayLike, df: npt.ArrayLike, *, margin: float
) -> Floats:
    """TOST: the larger of the two one-sided p against -margin and +margin."""
    difference, se = np.asarray(difference, dtype=np.float64), np.asarray(se, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lower = special.stdtr(df, -(difference + margin) / se)
        upper = special.stdtr(df, (difference - margin) / se)
    both = np.maximum(lower, upper)
    # Without any variance the difference is known: inside the margin or not.
    return np.where(se > 0, both, np.where(np.isnan(se), np.nan, (np.abs(difference) >= margin) * 1.0))


def equivalence_unreachable(*, margin: float, sem: float, n: int, alpha: float = ALPHA) -> bool:
    """Whether the SEM of the floor (or of the runs) alone forbids TOST, however well the other mean is known.

    >>> equivalence_unreachable(margin=0.315, sem=0.24, n=384)
    True
    >>> equivalence_unreachable(margin=0.25, sem=0.10, n=384)
    False
    """
    return bool(sem > 0 and margin / sem <= special.stdtrit(n - 1, 1 - alpha))
