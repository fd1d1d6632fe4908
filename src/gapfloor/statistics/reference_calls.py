"""The recommended calls of runs against a reference (usually the random floor).

The p compares what is known about the mean over runs with what is known about the reference's mean (`behrens_fisher`).
Holm's procedure runs over the games of a family, and each row has the interval at the level at which Holm tested it, so
that the interval excludes zero exactly when a call is made. A call that the shape of the runs does not allow
(`run_shape`) is not made: the row is "not tested", with the reason.

References:
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
        65-70.
    Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power approach. Journal of
        Pharmacokinetics and Biopharmaceutics 15, 657-680.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import FloorMean, RunsMean, difference_limit, floor_mean, tail_p
from gapfloor.statistics.conventions import (
    ALPHA,
    NAN,
    NO_PAIR,
    PAPER_MARGIN,
    ROUNDING,
    Floats,
    MarginRule,
    Pair,
    do_not_differ,
    finite_sample,
    sem,
)
from gapfloor.statistics.families import FamilyCall, holm, holm_divisors, word_of
from gapfloor.statistics.run_shape import FamilyShape, family_shape

#: With fewer runs a comparison is not tested, unless the plan says otherwise.
LEAST_RUNS = 3
#: With fewer episodes of the reference nothing is tested: their spread says too little about rare returns.
LEAST_FLOOR = 50


@dataclass(frozen=True)
class ReferenceTest:
    """The mean over runs minus the mean of a reference, tested without regard to Holm's correction."""

    n: int
    mean: float
    sem: float
    """Of the mean over runs."""
    delta: float
    se: float
    p: float
    p_tost: float
    """1 where the runs are known to be skewed or to form two groups."""
    margin: float
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
    def is_tested(self) -> bool:
        """Whether there is a p."""
        return not self.not_tested

    @property
    def doubt(self) -> str:
        """Why a call in the direction of the difference cannot be made; empty if it can."""
        return self.doubts[0 if self.delta > 0 else 1]

    @property
    def widened(self) -> tuple[bool, bool]:
        """Whether the lower and the upper limit were moved outwards for skewed runs."""
        low, high = (0.0, 0.0) if self.runs is None else self.runs.skewness
        return bool(low), bool(high)

    def interval(self, *, alpha: float) -> Pair:
        """The interval at 1 - alpha; it excludes zero exactly where p < alpha."""
        if self.runs is None or self.floors is None:
            return NO_PAIR
        low, high = (
            difference_limit(self.runs, floor, sign=sign, alpha=alpha / 2)
            for floor, sign in zip(self.floors, (1, -1), strict=True)
        )
        return low, high


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
        is_called_later: whether `call_reference_family` follows, which computes p again by the family's shape: until
            then the p are 1 where something is tested.

    >>> found = compare_to_reference([5.2, 6.1, 5.9], [0, 0, 2, 4, 0, 1] * 10)
    >>> round(found.delta, 2), round(found.p, 4)
    (4.57, 0.0146)
    """
    if least_runs < 2:
        raise UsageError(f"`least_runs` must be at least 2, but is {least_runs}.")
    values = finite_sample(run_values, "run_values")
    reference = finite_sample(reference_returns, "reference_returns", minimum=2)
    low, high = (float(values[0]), float(values[-1])) if seen is None else seen
    low, high = (
        min(low, float(reference[0]), float(values[0])),
        max(high, float(reference[-1]), float(values[-1])),
    )
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
        p=NAN,
        p_tost=NAN,
        margin=margin.at(reference_mean),
        run_values=tuple(values.tolist()),
    )
    reason = _why_not_tested(values, reference, low, high, least_runs, is_range_known=seen is not None)
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


def _why_not_tested(
    values: Floats, reference: Floats, low: float, high: float, least_runs: int, *, is_range_known: bool
) -> str:
    if values.size < least_runs:
        return f"{values.size} run{'' if values.size == 1 else 's'}"
    if reference.size < LEAST_FLOOR:
        return f"the floor has {reference.size} episodes, and {LEAST_FLOOR} are needed"
    if high - low <= ROUNDING * max(abs(low), abs(high)):
        return "no return differs from another"
    if not is_range_known and do_not_differ(reference, scale=max(abs(low), abs(high))):
        return "the floor's episodes do not differ, and the returns of the runs' episodes are not known"
    return ""


def call_reference_family(tests: Sequence[ReferenceTest], *, alpha: float = ALPHA) -> tuple[FamilyCall, ...]:
    """The recommended calls of a family, in the order given.

    Holm p < alpha: above or below, or not tested where the shape of the runs forbids the call; else TOST p < alpha (not
    adjusted): equivalent; else not distinguishable. Rows that cannot be tested do not count in the family.
    """
    shape = family_shape([test.run_values for test in tests if test.is_tested])
    tests = [_shaped(test, shape) if test.is_tested else test for test in tests]
    p_values = np.array([test.p for test in tests])
    found = zip(
        tests, holm(p_values), holm([test.p_tost for test in tests]), holm_divisors(p_values, alpha=alpha),
        strict=True,
    )  # fmt: skip
    size = int(np.count_nonzero(~np.isnan(p_values)))
    return tuple(
        _call(test, float(p), float(p_tost), int(divisor), family_size=size, alpha=alpha)
        for test, p, p_tost, divisor in found
    )


def _call(test: ReferenceTest, p_holm: float, p_tost_holm: float, divisor: int, **family: Any) -> FamilyCall:
    # The unadjusted p is compared, so that rounding cannot part call and interval.
    level = family["alpha"] / divisor if divisor else NAN
    call, reason = word_of(test.p, test.delta, ("above", "below"), alpha=level), test.not_tested
    if is_called := call in ("above", "below"):
        reason = test.doubt
    elif test.p_tost < family["alpha"]:
        call = "equivalent"
    if reason:
        call, p_holm, p_tost_holm, divisor = "not tested", NAN, NAN, 0
    return FamilyCall(
        test=test, call=call, p_holm=p_holm, p_tost_holm=p_tost_holm, divisor=divisor, not_tested=reason,
        is_withheld=is_called and bool(reason), **family,
    )  # fmt: skip


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
