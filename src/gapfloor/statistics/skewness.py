"""When the shape of the run values makes a call unreliable.

With right-skewed run values a sample that misses the long tail has a small mean and a small standard deviation at
once, so the t-test calls it "below" too often. This is the usual shape: returns have a lower bound, and a few runs
learn. A sample of six runs says little about its own shape, so the skewness is averaged over the games of a family.
A "below" call is reliable only where this average is clearly smaller than that of exponential run values and the
game's own runs are not skewed either. An "above" call is unreliable only where left skew is established. In both cases
the limit of the interval on this side is moved outwards (`skewed_limits`).

References:
    Joanes, D. N. and Gill, C. A. (1998). Comparing measures of sample skewness and kurtosis. The Statistician 47,
        183-189.
    Chen, L. (1995). Testing the mean of skewed distributions. Journal of the American Statistical Association 90,
        767-772.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.statistics.conventions import ALPHA, NAN, Floats

#: Mean of `scipy.stats.skew` over samples of exponential values (skewness 2), by sample size; the call:
#: scipy.stats.skew(numpy.random.default_rng(0).exponential(size=(400_000, n)), axis=1).mean()
EXPONENTIAL_SKEWNESS = {
    3: 0.199, 4: 0.384, 5: 0.537, 6: 0.658, 8: 0.842, 10: 0.973, 12: 1.072, 15: 1.186, 20: 1.318, 30: 1.475,
    50: 1.634, 100: 1.787,
}  # fmt: skip


@dataclass(frozen=True)
class Skewness:
    """The skewness of run values, averaged over the games of a family."""

    value: float
    """Mean over the games; NaN where no game has three runs that differ."""
    se: float
    """Its standard error if run values are normal."""
    harmful: float
    """What exponential run values would give on average."""
    n_games: int
    alpha: float
    adjusted: float = NAN
    """Mean over the games of the skewness with its usual correction for few values."""

    @property
    def rules_out_right_skew(self) -> bool:
        """Whether the average is so small that exponential run values would rarely give it."""
        return bool(self.value <= self.harmful + float(special.ndtri(self.alpha)) * self.se)

    @property
    def shows_left_skew(self) -> bool:
        """Whether left skew is established against normal run values."""
        return bool(self.value < float(special.ndtri(self.alpha)) * self.se)

    def doubts(self, delta: float, run_values: npt.ArrayLike) -> bool:
        """Whether a call of a game with these run values in the direction of `delta` is unreliable.

        A "below" call is also in doubt where the game's own runs are right-skewed by more than one standard error: a
        single skewed game hardly moves the family's average.
        """
        if delta > 0:
            return self.shows_left_skew
        values = np.sort(np.asarray(run_values, dtype=np.float64))
        own = float(sample_skewness(values)) if values.size > 2 else NAN
        return not (self.rules_out_right_skew and own <= math.sqrt(null_variance(values.size)))


def family_skewness(values_by_game: Sequence[npt.ArrayLike], *, alpha: float = ALPHA) -> Skewness:
    """The average sample skewness (m_3 / m_2^1.5) of the games of a family.

    Games with fewer than three runs, or whose runs do not differ, say nothing about the shape and do not count.
    """
    games = [np.sort(np.asarray(values, dtype=np.float64)) for values in values_by_game]
    games = [values for values in games if values.size > 2 and np.ptp(values) > 0]
    if not games:
        return Skewness(NAN, NAN, NAN, 0, alpha)
    found = np.sort([float(sample_skewness(values)) for values in games])
    adjusted = np.sort([float(adjusted_skewness(values)) for values in games])
    variances = [null_variance(values.size) for values in games]
    harmful = float(np.mean([exponential_skewness(values.size) for values in games]))
    return Skewness(
        float(found.mean()),
        math.sqrt(sum(variances)) / len(games),
        harmful,
        len(games),
        alpha,
        float(adjusted.mean()),
    )


def sample_skewness(values: Floats) -> Floats:
    """m_3 / m_2^1.5 over the last axis; equals `scipy.stats.skew`. Zero where the values are all equal."""
    centred = values - values.mean(axis=-1, keepdims=True)
    second, third = (centred**2).mean(axis=-1), (centred**3).mean(axis=-1)
    return np.asarray(third / np.where(second > 0, second, 1.0) ** 1.5)


def adjusted_skewness(values: Floats) -> Floats:
    """G_1 of Joanes and Gill over the last axis; equals `scipy.stats.skew(bias=False)`."""
    n = values.shape[-1]
    return np.asarray(sample_skewness(values) * math.sqrt(n * (n - 1)) / (n - 2))


def null_variance(n: int) -> float:
    """Variance of the sample skewness of n normal values.

    >>> round(null_variance(6), 4)
    0.381
    """
    return 6 * (n - 2) / ((n + 1) * (n + 3))


@cache
def exponential_skewness(n: int) -> float:
    """Mean sample skewness of n exponential values, interpolated in log n; constant beyond the table."""
    sizes = np.array(sorted(EXPONENTIAL_SKEWNESS))
    values = [EXPONENTIAL_SKEWNESS[int(size)] for size in sizes]
    return float(np.interp(math.log(n), np.log(sizes), values))
