"""One estimate: a number with its error, its interval and its test, and what it is about."""

from __future__ import annotations

from dataclasses import dataclass

from gapfloor.statistics.conventions import CONFIDENCE, NAN, THESE_LEVELS, Pair


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
