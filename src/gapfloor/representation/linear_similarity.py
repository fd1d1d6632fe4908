"""Linear CKA of two feature matrices with paired rows (Kornblith et al. 2019).

With centred columns, CKA = |X'Y|^2 / (|X'X| |Y'Y|) in Frobenius norms. It is a sum over paired rows: for it to measure
a representation, row i of both sides must be the same input (paper, "Representation Diagnostics").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError

Floats = npt.NDArray[np.float64]

#: With two rows CKA is 1 whatever they hold.
LEAST_ROWS = 3


@dataclass(frozen=True, eq=False)
class Centred:
    """One side: centred columns scaled to |X'X| = 1, so that CKA is |X'Y|^2, and its participation ratio."""

    columns: Floats
    pr: float


def linear_cka(x: Any, y: Any) -> float:
    """Linear CKA of two arrays `[n, d]` whose rows belong together.

    >>> x = np.random.default_rng(0).normal(size=(50, 4))
    >>> round(linear_cka(x, 3 * x[:, ::-1]), 12)
    1.0
    """
    return compare(*centre_both(x, y))


def centre_both(x: Any, y: Any) -> tuple[Centred, Centred]:
    """Two checked sides with as many rows."""
    if len(x) != len(y):
        raise UsageError(
            f"CKA needs as many rows on both sides, and these have {len(x)} and {len(y)}: take the rows that belong "
            "together."
        )
    return centre(x, name="x"), centre(y, name="y")


def participation_ratio(x: Any) -> float:
    """The effective number of directions in which features vary: trace(C)^2 / trace(C^2) of their covariance C.

    >>> round(participation_ratio(np.eye(4)), 12)
    3.0
    """
    return centre(x, name="x").pr


def centre(features: Any, *, name: str) -> Centred:
    """The checked, centred and scaled side that everything else computes with."""
    values = _check(np.asarray(features), f"`{name}`")
    # Scaled first: squares of large features must not overflow, and CKA does not depend on the scale.
    values = values / np.abs(values).max()
    # Units that never change contribute nothing.
    values = values[:, (values != values[:1]).any(axis=0)]
    values -= values.mean(axis=0)
    if values.shape[1] > len(values):
        # A rotation of the features that leaves n columns; CKA does not depend on that either.
        triangle = np.asarray(np.linalg.qr(values.T, mode="r"))
        values = np.ascontiguousarray(triangle.T)
    norm = float(np.linalg.norm(values.T @ values))
    return Centred(values / math.sqrt(norm), float(np.vdot(values, values)) ** 2 / norm**2)


def compare(left: Centred, right: Centred) -> float:
    """CKA of two sides."""
    product = left.columns.T @ right.columns
    return float(np.vdot(product, product))


def _check(values: npt.NDArray[Any], origin: str) -> Floats:
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise UsageError(
            f"{origin} is {values.dtype} of shape {values.shape}: CKA needs a matrix of numbers, one row per input."
        )
    if len(values) < LEAST_ROWS:
        raise UsageError(f"{origin} has {len(values)} rows: CKA means nothing below {LEAST_ROWS}.")
    wide = values.astype(np.float64)
    if not np.isfinite(wide).all():
        row = int(np.argmin(np.isfinite(wide).all(axis=1)))
        raise UsageError(f"{origin} holds a value that is not finite (row {row}): CKA is not defined.")
    if not (wide != wide[:1]).any():
        raise UsageError(f"All rows of {origin} are equal: features that do not vary have no CKA.")
    return wide
