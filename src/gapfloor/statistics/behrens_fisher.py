"""Estimates whose error has two parts with their own degrees of freedom, above all runs against a floor.

Two independent distributions describe what is known: Student's for the mean over runs (n - 1 degrees of freedom), and
one for the floor's mean. The p of "the runs score more" is the probability that a draw of the first is below a draw of
the second (Behrens and Fisher). With a known floor this is Student's test; with a known mean over runs it is the test
of the floor alone.

A floor with few successes has a small mean and a small standard error at once. Its mean is therefore bounded by that
of a random distribution over its returns and one more return: the highest that was seen in the comparison for an upper
bound, the lowest for a lower bound. The weights are Dirichlet(1, ..., 1). For two-valued returns this is the bound of
Clopper and Pearson. Mean, variance and skewness of the weighted mean are exact, and its quantiles are those of a
gamma distribution with these moments (Wilson and Hilferty), read at Student's t of the floor's episodes.

Runs that do not differ have no t. For them the same bound is used, with n equal values and one more run at the lowest
(highest) return that was seen: the runs' mean is that far from it times U^(1/n), with U uniform.

Where the run values may be skewed (`run_shape`), t is replaced by t + g (1 + 2 t^2) / (6 sqrt(n)) on the side of the
long tail (Johnson), with g the skewness; at most by 2 t.

References:
    Fisher, R. A. (1935). The fiducial argument in statistical inference. Annals of Eugenics 6, 391-398.
    Robinson, G. K. (1976). Properties of Student's t and of the Behrens-Fisher solution to the two means problem.
        Annals of Statistics 4, 963-971 (its size is at most nominal).
    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case of the
        binomial. Biometrika 26, 404-413.
    Rubin, D. B. (1981). The Bayesian bootstrap. Annals of Statistics 9, 130-134.
    Learned-Miller, E. and Thomas, P. S. (2019). A new confidence interval for the mean of a bounded random variable.
        arXiv:1905.06208.
    Wilson, E. B. and Hilferty, M. M. (1931). The distribution of chi-square. Proceedings of the National Academy of
        Sciences 17, 684-688.
    Johnson, N. J. (1978). Modified t tests and confidence intervals for asymmetrical populations. Journal of the
        American Statistical Association 73, 536-544.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.statistics.conventions import NAN, NO_PAIR, Floats, Pair

#: Normal scores at which a distribution is read, with their weights.
_SCORES = np.arange(-64, 65) / 8
_WEIGHTS = np.exp(-(_SCORES**2) / 2) / np.exp(-(_SCORES**2) / 2).sum()


@dataclass(frozen=True)
class FloorMean:
    """What is known about a floor's mean on one side (numbers, or arrays of many studies)."""

    mean: Floats
    sd: Floats
    skewness: Floats
    df: float


@dataclass(frozen=True)
class RunsMean:
    """What is known about the mean over runs (numbers, or arrays of many studies)."""

    mean: Floats
    se: Floats
    """Zero where the runs do not differ."""
    df: float
    n: int
    seen: tuple[npt.ArrayLike, npt.ArrayLike]
    """The lowest and the highest return of the comparison; used where the runs do not differ."""
    skewness: tuple[npt.ArrayLike, npt.ArrayLike] = (0.0, 0.0)
    """To the left and to the right, by which the lower and the upper limit are widened."""


class VariancePart(NamedTuple):
    """One of two independent parts of the variance of an estimate, with its degrees of freedom."""

    variance: float
    df: float


def floor_mean(returns: Floats, extreme: npt.ArrayLike) -> FloorMean:
    """The distribution of a floor's mean (episodes in the last axis) with `extreme` as one more return.

    >>> found = floor_mean(np.array([0.0] * 10), 1.0)  # Beta(1, 10)
    >>> round(float(found.mean), 4), round(float(found.sd), 4)
    (0.0909, 0.083)
    """
    values = np.concatenate([returns, np.asarray(extreme, dtype=np.float64)[..., None]], axis=-1)
    n = values.shape[-1]
    mean = values.mean(axis=-1)
    centred = values - mean[..., None]
    sd = np.sqrt((centred**2).sum(axis=-1) / (n * (n + 1)))
    third = ((centred / np.where(sd > 0, sd, 1.0)[..., None]) ** 3).sum(axis=-1)
    return FloorMean(mean, sd, 2 * third / (n * (n + 1) * (n + 2)), n - 2)


def planned_floor(sd: float, n: int) -> FloorMean:
    """The same for n floor episodes that are yet to be played: normal around 0, the highest at three times `sd`."""
    error = sd * math.sqrt((n + 8) / ((n + 1) * (n + 2)))
    return FloorMean(np.asarray(3 * sd / (n + 1)), np.asarray(error), np.zeros(()), n - 1)


def tail_p(runs: RunsMean, floor: FloorMean, *, sign: int, shift: Floats | float = 0.0) -> Floats:
    """The one-sided p of "sign * (mean over runs - floor - shift) > 0".

    >>> known = FloorMean(np.zeros(()), np.zeros(()), np.zeros(()), 99)
    >>> runs = RunsMean(np.asarray(1.2853), np.asarray(0.5), 5, 6, (0.0, 1.0))
    >>> round(float(tail_p(runs, known, sign=1)), 4)  # scipy.stats.t.isf(0.025, 5) * 0.5 = 1.2853
    0.025
    """
    side = 0 if sign > 0 else 1
    mean, se, floor_mean, floor_sd, skewness, widening, extreme = np.broadcast_arrays(
        np.asarray(runs.mean) - shift,
        runs.se,
        floor.mean,
        floor.sd,
        floor.skewness,
        np.asarray(runs.skewness[side]) / (6 * math.sqrt(runs.n)),
        np.asarray(runs.seen[side]) - shift,
    )
    p = np.empty(mean.shape)
    # The wider of the two distributions is smooth on the scale of the other, whose quantiles are averaged over.
    by_runs = (se > 0) & (se < floor_sd / 4)
    if by_runs.any():
        t = _quantiles(runs.df)
        wider = np.where(t > 0, t + np.minimum(widening[by_runs, None] * (1 + 2 * t**2), t), t)
        drawn = mean[by_runs, None] - sign * se[by_runs, None] * wider
        score = (drawn - floor_mean[by_runs, None]) / floor_sd[by_runs, None]
        p[by_runs] = special.stdtr(floor.df, -sign * _gamma_score(score, skewness[by_runs, None])) @ _WEIGHTS
    by_floor = ~by_runs
    if by_floor.any():
        drawn = _gamma_quantile(_quantiles(floor.df), skewness[by_floor, None])
        drawn = floor_mean[by_floor, None] + floor_sd[by_floor, None] * drawn
        distance = sign * (mean[by_floor, None] - drawn)
        error = se[by_floor, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = _unwidened(distance / np.where(error > 0, error, 1.0), widening[by_floor, None])
            room = sign * (mean[by_floor, None] - extreme[by_floor, None])
            equal = np.where(room > 0, np.clip(1 - distance / room, 0.0, 1.0) ** runs.n, distance <= 0)
        p[by_floor] = np.where(error > 0, special.stdtr(runs.df, -t), equal) @ _WEIGHTS
    return p


def difference_limit(runs: RunsMean, floor: FloorMean, *, sign: int, alpha: float) -> float:
    """The lower (sign 1) or upper (sign -1) limit of the difference: where the one-sided p is `alpha`."""
    from scipy import optimize  # a sixth of what a command imports, and few need it

    estimate = float(runs.mean - floor.mean)
    scale = max(float(runs.se), float(floor.sd)) or abs(
        float(runs.mean - np.asarray(runs.seen[0 if sign > 0 else 1]))
    )
    if scale == 0:
        return estimate

    def excess(distance: float) -> float:
        found = tail_p(runs, floor, sign=sign, shift=estimate - sign * distance * scale)
        return math.log(max(float(found), 1e-300)) - math.log(alpha)

    far = 4.0
    while excess(far) > 0:
        if far > 1e9:
            return -sign * math.inf
        far *= 4
    if excess(0.0) < 0:
        return estimate
    return estimate - sign * scale * float(optimize.brentq(excess, 0.0, far, xtol=1e-12, rtol=1e-10))


def two_part_p(estimate: float, first: VariancePart, second: VariancePart) -> float:
    """The two-sided p of an estimate whose variance has two parts; NaN where one is unknown.

    Without any variance the estimate is known: p is 1 for zero and 0 for anything else.

    >>> round(two_part_p(1.2853, VariancePart(0.25, 5), VariancePart(0.0, 9)), 4)  # Student's with 5 df
    0.05
    """
    if math.isnan(estimate + first.variance + second.variance):
        return NAN
    if not first.variance + second.variance:
        return float(estimate == 0)
    return min(1.0, 2 * float(tail_p(*_two_means(estimate, first, second), sign=1 if estimate > 0 else -1)))


def two_part_interval(estimate: float, first: VariancePart, second: VariancePart, *, alpha: float) -> Pair:
    """The interval at 1 - alpha of such an estimate; it excludes zero exactly where p < alpha."""
    if math.isnan(estimate + first.variance + second.variance):
        return NO_PAIR
    if not first.variance + second.variance:
        return estimate, estimate
    means = _two_means(estimate, first, second)
    low, high = (difference_limit(*means, sign=sign, alpha=alpha / 2) for sign in (1, -1))
    return low, high


def _two_means(estimate: float, *parts: VariancePart) -> tuple[RunsMean, FloorMean]:
    """The estimate as a difference: one part is the error of a mean over runs, the other that of a mean of zero."""
    runs, other = sorted(parts, key=lambda part: (not part.variance, part.df))
    zero, (se, sd) = np.zeros(()), np.sqrt([runs.variance, other.variance])
    return RunsMean(np.asarray(estimate), se, runs.df, 1, NO_PAIR), FloorMean(zero, sd, zero, other.df)


@lru_cache(maxsize=512)
def _quantiles(df: float) -> Floats:
    """Student's quantiles at the normal scores; the upper half mirrors the lower, which keeps its digits."""
    lower = special.stdtrit(df, special.ndtr(_SCORES[:64]))
    return np.concatenate([lower, [0.0], -lower[::-1]])


def _unwidened(t: Floats, widening: Floats) -> Floats:
    """The t that is widened to `t` (at most to 2 t)."""
    room = np.maximum(t - widening, 0.0)
    # The root of 2 w x^2 + x = room, without cancellation where w is small.
    root = 2 * room / (1 + np.sqrt(1 + 8 * widening * room))
    return np.where(t > 0, np.maximum(root, t / 2), t)


def _gamma_quantile(score: Floats, skewness: Floats) -> Floats:
    """The standardised gamma quantile at a normal score (Wilson and Hilferty)."""
    is_skewed = np.abs(skewness) > 1e-6
    g = np.where(is_skewed, skewness, 1.0)
    return np.where(is_skewed, (np.maximum(1 + g * score / 6 - (g / 6) ** 2, 0.0) ** 3 - 1) * 2 / g, score)


def _gamma_score(quantile: Floats, skewness: Floats) -> Floats:
    """The inverse of `_gamma_quantile`; infinite beyond the end of the distribution."""
    is_skewed = np.abs(skewness) > 1e-6
    g = np.where(is_skewed, skewness, 1.0)
    inside = 1 + g * quantile / 2
    score = (np.cbrt(np.maximum(inside, 0.0)) - 1 + (g / 6) ** 2) * 6 / g
    return np.where(is_skewed, np.where(inside > 0, score, -np.sign(g) * np.inf), quantile)
