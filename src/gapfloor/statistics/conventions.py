"""The words and numbers that the paper's tests share (its section on statistical analysis), and what an estimate is.

The numbers are defaults for direct use of `gapfloor.statistics`; an analysis takes them from its plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError

Call = Literal["above", "below", "equivalent", "not distinguishable", "not tested"]
Tier = Literal["low", "intermediate", "high"]
#: Whose test, call or interval.
Method = Literal["paper", "recommended"]
#: Which limits of an interval were moved outwards because run values may be skewed.
Widened = Literal["", "upper", "lower", "both"]
Pair = tuple[float, float]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: The estimand of every test that takes runs as the sample and the played levels as given.
THESE_LEVELS = "these levels"
#: The estimand where there are too few runs to test: what these runs would score in new episodes on the same levels.
THESE_RUNS = "these runs on these levels"
#: The estimand of estimators that take the played levels as a sample of what the generator makes.
GENERATOR = "the generator of levels"

#: The paper's level of significance, its interval and its number of bootstrap resamples.
ALPHA = 0.05
CONFIDENCE = 0.95
N_RESAMPLES = 10_000

#: Sizes between which sums of sixth powers are neither infinite nor 0. Every float32 that is not 0 lies between them.
SMALLEST, LARGEST = 1e-50, 1e50

#: Differences smaller than this part of the values are rounding errors of their sums.
ROUNDING = 1e-9

#: A return above and below the floor.
CALLS = ("above", "below")

NAN = float("nan")
NO_PAIR: Pair = (NAN, NAN)


@dataclass(frozen=True)
class MarginRule:
    """How far from the floor still counts as equivalent: max(fraction * |floor|, minimum)."""

    fraction: float = 0.1
    minimum: float = 0.25

    def at(self, floor: float) -> float:
        """The margin for a floor mean.

        >>> MarginRule().at(3.15)
        0.315
        >>> MarginRule().at(-0.1)
        0.25
        """
        return max(self.fraction * abs(floor), self.minimum)


PAPER_MARGIN = MarginRule()


def finite_sample(values: npt.ArrayLike, name: str, *, minimum: int = 1) -> Floats:
    """`values` as a sorted one-dimensional float array, refused if short or not finite.

    Sorting makes every sum, and every resample drawn by index, independent of the order of the rows.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise UsageError(f"`{name}` must be one-dimensional, but has shape {array.shape}.")
    if array.size < minimum:
        raise UsageError(f"`{name}` needs at least {minimum} values, but has {array.size}.")
    bad = ~(np.abs(array) <= LARGEST)
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        raise UsageError(
            f"`{name}` must be finite and at most {LARGEST:g} in size, but value {where} is {array[where]}."
        )
    return np.sort(array)


def check_sizes(numbers: Mapping[str, float | None]) -> None:
    """Refuse numbers (by name) that are not finite, or whose powers are not."""
    for name, value in numbers.items():
        if value is not None and value != 0 and not SMALLEST <= abs(value) <= LARGEST:
            raise UsageError(
                f"The {name} must be 0 or between {SMALLEST:g} and {LARGEST:g} in size, but is {value:g}."
            )


def do_not_differ(values: Floats, *, scale: float = 0.0) -> bool:
    """Whether values are equal up to rounding errors: their range is tiny compared with their size (or `scale`).

    >>> do_not_differ(np.array([0.1, 0.1 + 1e-17, 0.3 / 3]))
    True
    """
    return bool(np.ptp(values) <= ROUNDING * max(float(np.abs(values).max()), scale))


def sem(values: Floats) -> float:
    """Standard error of a mean, sd(ddof=1)/sqrt(n); NaN for one value."""
    if values.size < 2:
        return NAN
    return float(values.std(ddof=1) / np.sqrt(values.size))


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number that a method estimated; what the method cannot say is NaN."""

    value: float
    """The estimate."""
    se: float = NAN
    """Its standard error."""
    df: float = NAN
    """Degrees of freedom of the standard error, where one number describes them."""
    low: float = NAN
    """Lower end of the interval."""
    high: float = NAN
    """Upper end of the interval."""
    confidence: float = CONFIDENCE
    """Confidence of the interval; a recommended interval has the level at which Holm's procedure tested it."""
    p: float = NAN
    """Two-sided p against zero, before any correction."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""
    method: str = ""
    """Which method made it: paper or recommended, or the name of another estimator."""

    @property
    def interval(self) -> Pair:
        """Both ends of the interval."""
        return self.low, self.high
