"""Runs against a reference, usually the random floor: the paper's test, and the recommended one.

The paper's test is Welch's of run values against floor episodes. The recommended p compares what is known about the
mean over runs with what is known about the reference's mean (`behrens_fisher`). Its interval is at the level at which
Holm tested the row, so that it excludes zero exactly when a call is made. A call that the shape of the runs does not
allow (`run_shape`) is not made: the row is "not tested", with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import FloorMean, RunsMean, difference_limit, floor_mean, tail_p
from gapfloor.statistics.bootstrap import difference_interval
from gapfloor.statistics.conventions import (
    CALLS,
    CONFIDENCE,
    N_RESAMPLES,
    NAN,
    NO_PAIR,
    PAPER_MARGIN,
    ROUNDING,
    Estimate,
    MarginRule,
    Pair,
    Widened,
    do_not_differ,
    finite_sample,
    sem,
)
from gapfloor.statistics.families import FamilyTest
from gapfloor.statistics.run_shape import FamilyShape, family_shape
from gapfloor.statistics.welch import equivalence_p, moments, welch_of_moments

#: With fewer runs a comparison is not tested, unless the plan says otherwise.
LEAST_RUNS = 3
#: With fewer episodes of the reference nothing is tested: their spread says too little about rare returns.
LEAST_FLOOR = 50


@dataclass(frozen=True, kw_only=True)
class FloorDifference(FamilyTest):
    """The mean over runs minus the mean of a reference, tested without regard to Holm's correction."""

    words = CALLS
    n: int
    """Number of runs."""
    mean: float
    """Mean over runs."""
    sem: float
    """Standard error of `mean` over runs: sd(ddof=1)/sqrt(n)."""
    delta: float
    """mean - floor."""
    se: float
    """Standard error of delta: run-to-run and per-episode floor variance together."""
    p: float = NAN
    """Two-sided p, before any correction."""
    p_tost: float = NAN
    """p of the equivalence test (two one-sided tests) at the margin; not corrected for the family."""
    margin: float
    """How far from the floor still counts as equivalent."""


@dataclass(frozen=True, kw_only=True)
class FloorComparison(FloorDifference):
    """The paper's test: Welch's, with a percentile bootstrap interval."""

    method = "paper"
    widened: ClassVar[Widened] = ""
    ci: Pair
    """Percentile bootstrap interval of delta; runs and floor episodes are both resampled."""
    df: float
    """Its degrees of freedom (Satterthwaite)."""
    confidence: float = CONFIDENCE
    """Confidence of the interval."""

    def estimate(self, *, alpha: float | None = None) -> Estimate:
        """Delta with its percentile interval, whatever `alpha` is."""
        return Estimate(
            value=self.delta, se=self.se, df=self.df, low=self.ci[0], high=self.ci[1], confidence=self.confidence,
            p=self.p, method="paper",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReferenceTest(FloorDifference):
    """The recommended test. `p_tost` is 1 where the runs are known to be skewed or to form two groups."""

    method = "recommended"
    run_values: tuple[float, ...]
    """In ascending order; the family's shape is taken from them."""
    not_tested: str = ""
    """Why nothing can be tested; empty where it can."""
    doubts: tuple[str, str] = ("", "")
    """Why the runs cannot be called above, and below, by the shape of these runs or of the family once it is called."""
    runs: RunsMean | None = field(default=None, repr=False)
    floors: tuple[FloorMean, FloorMean] | None = field(default=None, repr=False)
    """With the highest, and with the lowest return of the comparison as one more episode."""

    @property
    def doubt(self) -> str:  # type: ignore[override]
        """Why a call in the direction of the difference cannot be made; empty if it can."""
        return self.doubts[0 if self.delta > 0 else 1]

    @property
    def widened(self) -> Widened:
        """Which limits were moved outwards for skewed runs."""
        low, high = (0.0, 0.0) if self.runs is None else self.runs.skewness
        return "both" if low and high else "lower" if low else "upper" if high else ""

    @staticmethod
    def in_family(tests: Sequence[ReferenceTest]) -> list[ReferenceTest]:
        """The tests by the shape of all runs of the family."""
        if not (tested := [test.run_values for test in tests if not test.not_tested]):
            return list(tests)
        shape = family_shape(tested)
        return [test if test.not_tested else _shaped(test, shape) for test in tests]

    def estimate(self, *, alpha: float | None = None) -> Estimate:
        """The difference with its interval at 1 - alpha, which excludes zero exactly where p < alpha."""
        low, high = NO_PAIR
        if self.runs is not None and self.floors is not None and alpha is not None:
            low, high = (
                difference_limit(self.runs, floor, sign=sign, alpha=alpha / 2)
                for floor, sign in zip(self.floors, (1, -1), strict=True)
            )
        return Estimate(
            value=self.delta,
            se=self.se,
            low=low,
            high=high,
            confidence=NAN if alpha is None else 1 - alpha,
            p=self.p,
            method="recommended",
        )


def compare_to_floor(
    run_values: npt.ArrayLike,
    floor_returns: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    margin: MarginRule = PAPER_MARGIN,
    confidence: float = CONFIDENCE,
    n_resamples: int = N_RESAMPLES,
) -> FloorComparison:
    """Delta with Welch's test, its percentile interval and TOST.

    Args:
        run_values: one value per run, its mean over all of its episodes.
        floor_returns: the floor's episode returns on the same draws.
        rng: generator of the resamples; runs and floor episodes are both resampled.
        margin: what still counts as equivalent.
        confidence: of the interval.
        n_resamples: of the bootstrap.

    With one run nothing can be tested: the tests are NaN and the interval too.

    >>> rng = np.random.default_rng(0)
    >>> c = compare_to_floor([5.2, 6.1, 5.9], [0, 0, 2, 4, 0, 1], rng=rng)
    >>> round(c.delta, 2)
    4.57
    """
    runs = finite_sample(run_values, "run_values")
    floor = finite_sample(floor_returns, "floor_returns", minimum=2)
    own, other = moments(runs), moments(floor)
    test = welch_of_moments(own, other)
    width = margin.at(other.mean)
    return FloorComparison(
        n=runs.size,
        mean=own.mean,
        sem=own.sem,
        delta=test.difference,
        se=float(np.hypot(own.sem, other.sem)),
        ci=difference_interval(runs, floor, confidence=confidence, n_resamples=n_resamples, rng=rng)
        if runs.size > 1
        else NO_PAIR,
        df=test.df,
        p=test.p,
        p_tost=float(equivalence_p(test.difference, test.se, test.df, margin=width)),
        margin=width,
        confidence=confidence,
    )


def compare_to_reference(
    run_values: npt.ArrayLike,
    reference_returns: npt.ArrayLike,
    *,
    seen: Pair | None = None,
    margin: MarginRule = PAPER_MARGIN,
    least_runs: int = LEAST_RUNS,
    is_called_later: bool = False,
) -> ReferenceTest:
    """The mean over runs minus the mean over the reference's episodes, with p and TOST.

    Args:
        run_values: one value per run, its mean over all of its episodes.
        reference_returns: the reference's episode returns on the same levels.
        seen: the lowest and the highest episode return of the runs (default: of the run values). Without it a reference
            whose episodes do not differ cannot be tested.
        margin: the difference that still counts as equivalent.
        least_runs: with fewer runs the p are NaN ("not tested").
        is_called_later: whether `families.call_family` follows, which computes p again by the family's shape: until
            then the p are 1 where something is tested.

    >>> found = compare_to_reference([5.2, 6.1, 5.9], [0, 0, 2, 4, 0, 1] * 10)
    >>> round(found.delta, 2), round(found.p, 4)
    (4.57, 0.0146)
    """
    if least_runs < 2:
        raise UsageError(f"`least_runs` must be at least 2, but is {least_runs}.")
    values = finite_sample(run_values, "run_values")
    reference = finite_sample(reference_returns, "reference_returns", minimum=2)
    ends = (values[0], values[-1], reference[0], reference[-1], *(seen or ()))
    low, high = float(min(ends)), float(max(ends))
    size = max(abs(low), abs(high))
    mean, reference_mean = float(values.mean()), float(reference.mean())
    delta = mean - reference_mean
    own = 0.0 if values.size > 1 and do_not_differ(values, scale=size) else sem(values)
    found = ReferenceTest(
        n=values.size,
        mean=mean,
        sem=own,
        delta=0.0 if abs(delta) <= ROUNDING * size else delta,
        se=math.hypot(own, sem(reference)),
        margin=margin.at(reference_mean),
        run_values=tuple(values.tolist()),
    )
    reason = ""
    if values.size < least_runs:
        reason = f"{values.size} run{'' if values.size == 1 else 's'}"
    elif reference.size < LEAST_FLOOR:
        reason = f"the floor has {reference.size} episodes, and {LEAST_FLOOR} are needed"
    elif high - low <= ROUNDING * size:
        reason = "no return differs from another"
    elif seen is None and do_not_differ(reference, scale=size):
        reason = "the floor's episodes do not differ, and the returns of the runs' episodes are not known"
    if reason:
        return replace(found, not_tested=reason)
    found = replace(
        found,
        p=1.0,
        p_tost=1.0,
        runs=RunsMean(np.asarray(mean), np.asarray(own), values.size - 1, values.size, (low, high)),
        floors=(floor_mean(reference, high), floor_mean(reference, low)),
    )
    return found if is_called_later else _shaped(found, family_shape([values]))


def _shaped(test: ReferenceTest, shape: FamilyShape) -> ReferenceTest:
    """The comparison with the limits and p that this shape asks for."""
    assert test.runs is not None
    assert test.floors is not None
    above, below = shape.doubt(1, test.run_values), shape.doubt(-1, test.run_values)
    skewness = (max(-shape.skewness, 0.0) if above else 0.0, max(shape.skewness, 0.0) if below else 0.0)
    runs = replace(test.runs, skewness=skewness)
    sides = tuple(zip(test.floors, (1, -1), strict=True))
    p = 1.0
    if test.delta:
        floor, sign = sides[0 if test.delta > 0 else 1]
        p = min(1.0, 2 * float(tail_p(runs, floor, sign=sign)))
    equivalent = 1.0
    if shape.allows_equivalence:
        # Each limit must lie inside the margin: more than -margin, and less than +margin.
        equivalent = max(
            float(tail_p(runs, floor, sign=sign, shift=-sign * test.margin)) for floor, sign in sides
        )
    return replace(test, runs=runs, doubts=(above, below), p=p, p_tost=equivalent)
