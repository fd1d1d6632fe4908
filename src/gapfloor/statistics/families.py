"""Holm's correction within a family, and the call that follows from it.

References:
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics,
    6(2), 65-70.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import ALPHA, NAN, Estimate, Floats, Ints, Method


class FamilyTest(ABC):
    """A test before any correction."""

    words: ClassVar[tuple[str, str]]
    """What a value above and below zero is called."""
    method: ClassVar[Method]
    not_tested = ""
    """Why nothing can be tested; empty where it can."""
    doubt = ""
    """Why the call that the test would make cannot be made; empty if it can."""
    p_tost = p_plain = p_runs = NAN
    """Of further tests, which Holm's procedure corrects too."""

    @abstractmethod
    def estimate(self, *, alpha: float | None = None) -> Estimate:
        """What is tested, with its p; a recommended estimate has its interval at 1 - alpha."""

    @staticmethod
    def in_family(tests: Sequence[Any]) -> Sequence[Any]:
        """The tests of a family as they depend on each other."""
        return tests


@dataclass(frozen=True, kw_only=True)
class FamilyCall:
    """What one test says within its family."""

    test: Any
    """What was tested, before any correction."""
    call: Any
    """In words; "not tested" where there is no p, or where the shape of the runs forbids the call."""
    p_holm: float
    """p after Holm's correction over the family."""
    family_size: int
    """Number of tests in the family."""
    not_tested: str = ""
    """Why there is no call; empty where there is one."""
    is_withheld: bool = False
    """Whether the shape of the runs forbids the call that the test would make."""
    p_tost_holm: float = NAN
    """Of calls against a reference: Holm over the family's equivalence tests."""
    p_plain_holm: float = NAN
    """Of recommended gaps: Holm over the tests with slope one."""
    p_runs_holm: float = NAN
    """Of recommended gaps: Holm over the tests on the played levels."""
    divisor: int = 0
    """Holm's divisor at which this row was rejected, or at which the procedure stopped; 0 if not tested."""
    alpha: float = ALPHA

    @property
    def estimate(self) -> Estimate:
        """A recommended one has its interval at 1 - alpha / divisor: it excludes zero exactly when a call says so."""
        found: Estimate = self.test.estimate(alpha=self.alpha / self.divisor if self.divisor else None)
        return found

    @property
    def is_equivalent_in_family(self) -> bool:
        """Whether the row is also called equivalent when the equivalence tests are Holm-adjusted."""
        return bool(self.call == "equivalent" and self.p_tost_holm < self.alpha)


def call_family(tests: Sequence[FamilyTest], *, alpha: float = ALPHA) -> tuple[FamilyCall, ...]:
    """The calls of a family, in the order given; a test without a p does not count in it.

    Holm p < alpha: one of the words, or not tested where the shape of the runs forbids the call; else TOST p < alpha
    (not adjusted): equivalent; else not distinguishable.
    """
    tests = tests[0].in_family(tests) if tests else ()
    found = [test.estimate() for test in tests]
    p_values = [each.p for each in found]
    divisors, calls = holm_divisors(p_values, alpha=alpha), []
    further = {
        f"{name}_holm": [getattr(test, name) for test in tests] for name in ("p_tost", "p_plain", "p_runs")
    }
    adjusted = {name: holm(values) for name, values in {"p_holm": p_values, **further}.items()}
    for at, (test, one, divisor) in enumerate(zip(tests, found, divisors.tolist(), strict=True)):
        # The unadjusted p is compared, so that rounding cannot part call and interval.
        call, reason = word_of(one.p, one.value, test.words, alpha=alpha / max(divisor, 1)), ""
        if is_made := call in test.words:
            reason = test.doubt
        elif call == "not tested":
            reason = test.not_tested
        elif test.p_tost < alpha:
            call = "equivalent"
        if is_withheld := is_made and bool(reason):
            call, divisor = "not tested", 0
        p_holm = {
            name: float(values[at]) if divisor and not math.isnan(values[at]) else NAN
            for name, values in adjusted.items()
        }
        calls.append(
            FamilyCall(
                test=test, call=call, divisor=divisor, family_size=int(np.count_nonzero(divisors)), alpha=alpha,
                not_tested=reason, is_withheld=is_withheld, **p_holm,
            )
        )  # fmt: skip
    return tuple(calls)


def holm(p_values: npt.ArrayLike) -> Floats:
    """Holm-adjusted p; NaN (a test that could not be done) stays NaN and does not count.

    Equals `statsmodels.stats.multitest.multipletests(p, method="holm")[1]`.

    >>> [float(p) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(p.shape, NAN)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if order.size else steps
    return adjusted


def holm_divisors(p_values: npt.ArrayLike, *, alpha: float = ALPHA) -> Ints:
    """Holm's divisor of each row: p < alpha / divisor exactly for the rejected rows.

    A rejected row has the divisor of its own step; all others have that of the step at which the procedure stopped.
    NaN rows (not tested) have 0.

    >>> holm_divisors([0.001, 0.2, 0.02, float("nan")]).tolist()
    [3, 1, 2, 0]
    """
    p = np.asarray(p_values, dtype=np.float64)
    divisors = np.zeros(p.shape, dtype=np.int64)
    known = np.flatnonzero(~np.isnan(p))
    if not known.size:
        return divisors
    order = known[np.argsort(p[known], kind="stable")]
    steps = np.arange(order.size, 0, -1)
    rejected = np.logical_and.accumulate(p[order] < alpha / steps)
    stopped = max(order.size - int(rejected.sum()), 1)
    divisors[order] = np.where(rejected, steps, stopped)
    return divisors


def word_of(p_adjusted: float, value: float, words: tuple[str, str], *, alpha: float) -> Any:
    """What a test says of a value: one of two words for above and below zero, where it says anything.

    >>> word_of(0.01, -2.0, ("train higher", "test higher"), alpha=0.05)
    'test higher'
    """
    if math.isnan(p_adjusted):
        return "not tested"
    if p_adjusted >= alpha:
        return "not distinguishable"
    return words[0] if value > 0 else words[1]
