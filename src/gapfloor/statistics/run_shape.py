"""What the shape of the run values allows to be said.

With right-skewed run values a sample that misses the long tail has a small mean and a small standard deviation at
once, so a t-test calls it "below" too often. This is the usual shape: returns have a lower bound, and a few runs
learn. Left skew does the same to "above". Runs that form two groups do it to both: a few runs may all belong to one
group. Six runs say little about their own shape, so it is averaged over the games of a family:

- "below" is in doubt unless the average skewness is clearly smaller than that of exponential run values, and so is,
  less clearly, that of the game's own runs: a game may have another shape than its family;
- "above" is in doubt where left skew is established;
- both are in doubt where two groups are established: the kurtosis is too small for normal run values (it is 1 for two
  groups of equal size). Three values have no kurtosis; their squared skewness is largest where two of them are close.

References:
    Joanes, D. N. and Gill, C. A. (1998). Comparing measures of sample skewness and kurtosis. The Statistician 47,
        183-189.
    Chen, L. (1995). Testing the mean of skewed distributions. Journal of the American Statistical Association 90,
        767-772.
    Fisher, R. A. (1930). The moments of the distribution for normal samples of measures of departure from normality.
        Proceedings of the Royal Society A 130, 16-28.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.statistics.conventions import Floats, Ints, do_not_differ

#: Mean of `scipy.stats.skew` over samples of exponential values (skewness 2), by sample size; the call:
#: scipy.stats.skew(numpy.random.default_rng(0).exponential(size=(400_000, n)), axis=1).mean()
_EXPONENTIAL = {
    3: 0.199, 4: 0.384, 5: 0.537, 6: 0.658, 8: 0.842, 10: 0.973, 12: 1.072, 15: 1.186, 20: 1.318, 30: 1.475,
    50: 1.634, 100: 1.787,
}  # fmt: skip
#: Levels at which exponential run values are ruled out, for the average of a family and for one of its games.
_RIGHT_ALPHA = 0.05
_OWN_ALPHA = 0.15
#: Levels of the tests for left skew and for two groups, by the smallest number of runs. Left skew is rare, and finding
#: it where there is none costs "above" calls. But three runs so often miss a tail, or are of one group, that both tests
#: must be sensitive; ten and more runs are hardly ever of one group.
_LEFT_ALPHA = {3: 0.15}
_USUAL_LEFT_ALPHA = 0.02
_TWO_GROUPS_ALPHA = {3: 0.1} | dict.fromkeys(range(4, 10), 0.01)


@dataclass(frozen=True)
class FamilyShape:
    """The shape of the run values of a family of games."""

    skewness: float = 0.0
    """Mean over the games of the skewness with its usual correction for few values (G_1 of Joanes and Gill)."""
    may_be_right_skewed: bool = True
    """Whether exponential run values would often give such an average."""
    is_right_skewed: bool = False
    """Whether right skew is established."""
    is_left_skewed: bool = False
    """Whether left skew is established."""
    has_two_groups: bool = False
    """Whether two groups of runs are established."""

    @property
    def allows_equivalence(self) -> bool:
        """Whether no shape is established for which limits are too short."""
        return not (self.is_right_skewed or self.is_left_skewed or self.has_two_groups)

    def doubt(self, sign: int, run_values: npt.ArrayLike) -> str:
        """Why these runs of the family cannot be called above (sign 1) or below (-1); empty if they can."""
        values = np.asarray(run_values, dtype=np.float64)
        if sign < 0 and do_not_differ(values):
            return "the runs do not differ"
        if self.has_two_groups:
            return "the runs form two groups"
        if sign > 0:
            return "the runs may be left-skewed" if self.is_left_skewed else ""
        own = float(sample_skewness(values)) if values.size > 2 else math.inf
        is_clear = not self.may_be_right_skewed and own <= _largest_own_skewness(values.size)
        return "" if is_clear else "the runs may be right-skewed"


def family_shape(values_by_game: Sequence[npt.ArrayLike]) -> FamilyShape:
    """The shape of the run values of a family.

    Games with fewer than three runs, or whose runs do not differ, say nothing about the shape and do not count.
    """
    games = [np.sort(np.asarray(values, dtype=np.float64)) for values in values_by_game]
    games = [values for values in games if values.size > 2 and not do_not_differ(values)]
    if not games:
        return FamilyShape()
    sizes = np.array([values.size for values in games])
    skewness = np.array([float(sample_skewness(values)) for values in games])
    adjusted = skewness * np.sqrt(sizes * (sizes - 1)) / (sizes - 2)
    found = _judged(skewness, np.array([float(groups_score(values)) for values in games]), sizes)
    return FamilyShape(float(np.sort(adjusted).mean()), *(bool(each) for each in found))


def difference_doubt(higher: FamilyShape, lower: FamilyShape) -> str:
    """Why an agent with the first shape cannot be called higher than one with the second; empty if it can."""
    if higher.has_two_groups or lower.has_two_groups:
        return "the runs form two groups"
    return "the runs may be skewed" if higher.is_left_skewed or lower.is_right_skewed else ""


def are_in_doubt(values: Floats) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """`FamilyShape.doubt` of many families (families, games, runs) whose runs differ: above, then below."""
    own, n = sample_skewness(values), values.shape[-1]
    right, _, left, groups = _judged(own, groups_score(values), np.full(values.shape[-2], n))
    above = np.broadcast_to((left | groups)[:, None], own.shape)
    return above, (right | groups)[:, None] | (own > _largest_own_skewness(n))


def _judged(skewness: Floats, groups: Floats, sizes: Ints) -> tuple[Any, Any, Any, Any]:
    """Whether games (last axis) may be right-skewed, are, are left-skewed, and have two groups of runs."""
    harmful = float(np.mean([_exponential_skewness(int(n)) for n in sizes]))
    error = math.sqrt(sum(null_variance(int(n)) for n in sizes)) / len(sizes)
    least = int(sizes.min())
    levels = _RIGHT_ALPHA, _LEFT_ALPHA.get(least, _USUAL_LEFT_ALPHA)
    right, left = (float(special.ndtri(level)) * error for level in levels)
    mean = np.sort(skewness, axis=-1).mean(axis=-1)
    score = np.sort(groups, axis=-1).sum(axis=-1) / math.sqrt(len(sizes))
    group_level = _TWO_GROUPS_ALPHA.get(least, 0.0)
    return mean > harmful + right, mean > -right, mean < left, score > -float(special.ndtri(group_level))


def sample_skewness(values: Floats) -> Floats:
    """m_3 / m_2^1.5 over the last axis; equals `scipy.stats.skew`. Zero where the values are all equal."""
    second, third, _ = _central_moments(values)
    return np.asarray(third / np.where(second > 0, second, 1.0) ** 1.5)


def groups_score(values: Floats) -> Floats:
    """How much the values (last axis) look like two groups: mean 0 and standard deviation 1 for normal values."""
    n = values.shape[-1]
    if n == 3:
        return np.asarray((sample_skewness(values) ** 2 - 1 / 4) * math.sqrt(32))
    second, _, fourth = _central_moments(values)
    expected = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    return np.asarray((expected - fourth / second**2) / math.sqrt(variance))


def null_variance(n: int) -> float:
    """Variance of the sample skewness of n normal values.

    >>> round(null_variance(6), 4)
    0.381
    """
    return 6 * (n - 2) / ((n + 1) * (n + 3))


def _largest_own_skewness(n: int) -> float:
    """The sample skewness of n runs up to which they do not look like exponential ones."""
    return _exponential_skewness(max(n, 3)) + float(special.ndtri(_OWN_ALPHA)) * math.sqrt(null_variance(n))


def _central_moments(values: Floats) -> tuple[Floats, Floats, Floats]:
    """The second to fourth, on the scale of the largest deviation."""
    centred = values - values.mean(axis=-1, keepdims=True)
    largest = np.abs(centred).max(axis=-1, keepdims=True)
    centred = centred / np.where(largest > 0, largest, 1.0)
    second, third, fourth = ((centred**k).mean(axis=-1) for k in (2, 3, 4))
    return second, third, fourth


@cache
def _exponential_skewness(n: int) -> float:
    """Mean sample skewness of n exponential values, interpolated in log n; constant beyond the table."""
    return float(np.interp(math.log(n), np.log(list(_EXPONENTIAL)), list(_EXPONENTIAL.values())))
