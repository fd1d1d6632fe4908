"""Holm's correction within a family, and the call that follows from it.

References:
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics,
    6(2), 65-70.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import ALPHA, NAN, Call, Floats
from gapfloor.statistics.floor import FloorComparison


@dataclass(frozen=True)
class FamilyCall:
    """A comparison's place in its family."""

    p_holm: float
    """p after Holm's correction over the family."""
    call: Call
    """above, below, equivalent or not distinguishable; not tested where there is no p."""
    family_size: int
    """Number of tests in the family."""


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


def call_family(comparisons: Sequence[FloorComparison], *, alpha: float = ALPHA) -> tuple[FamilyCall, ...]:
    """The calls of a family of floor comparisons, in the order given.

    Holm p < alpha: above or below; else TOST p < alpha (not adjusted): equivalent; else not distinguishable.
    """
    adjusted = holm([comparison.p for comparison in comparisons])
    size = int(np.count_nonzero(~np.isnan(adjusted)))
    return tuple(
        FamilyCall(float(p), make_call(c.delta, float(p), c.p_tost, alpha=alpha), size)
        for c, p in zip(comparisons, adjusted, strict=True)
    )


def make_call(delta: float, p_holm: float, p_tost: float, *, alpha: float = ALPHA) -> Call:
    """The verbal call of one comparison; a NaN p was not tested."""
    call: Call = word_of(p_holm, delta, ("above", "below"), alpha=alpha)
    return "equivalent" if call == "not distinguishable" and p_tost < alpha else call


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
