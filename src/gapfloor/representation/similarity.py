"""Linear CKA of two feature matrices with paired rows (Kornblith et al. 2019), its null, and the 2x2 control.

With centred columns, CKA = |X'Y|^2 / (|X'X| |Y'Y|) in Frobenius norms. It is a sum over paired rows: for it to measure
a representation, row i of both sides must be the same input (paper, "Representation Diagnostics").

Under a uniform permutation of one side's rows the mean of linear CKA is exactly sqrt(PR_X PR_Y) / (n - 1): for
centred K = XX' and L = YY', E[PLP'] = trace(L) / (n - 1) on the centred subspace, so E[trace(K PLP')] is
trace(K) trace(L) / (n - 1), and trace / Frobenius norm is the square root of the participation ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.representation.recording import Recording

Floats = npt.NDArray[np.float64]

#: With two rows CKA is 1 whatever they hold, and with fewer aligned rows the 2x2 control says nothing.
LEAST_ROWS, LEAST_ALIGNED = 3, 16

#: Shuffles that are multiplied at once: wide enough for the matrix product, small enough for the cache.
_TOGETHER = 8


class Centred(NamedTuple):
    """One side: centred columns scaled to |X'X| = 1, so that CKA is |X'Y|^2, and its participation ratio."""

    columns: Floats
    pr: float


@dataclass(frozen=True, kw_only=True)
class PermutationNull:
    """CKA compared with `permutations` shuffles of one side's rows."""

    observed: float
    mean: float
    sd: float
    exact_mean: float
    """What `mean` estimates."""
    n: int
    permutations: int
    p_value: float
    """The share of shuffles, the observed order counted among them, that reach the observed value."""

    @property
    def z(self) -> float:
        """How many standard deviations of the null the observed value lies above its mean."""
        return (self.observed - self.mean) / self.sd if self.sd > 0 else math.nan


def linear_cka(x: Any, y: Any) -> float:
    """Linear CKA of two arrays `[n, d]` whose rows belong together.

    >>> x = np.random.default_rng(0).normal(size=(50, 4))
    >>> round(linear_cka(x, 3 * x[:, ::-1]), 12)
    1.0
    """
    return _compare(*_centre_both(x, y))


def participation_ratio(x: Any) -> float:
    """The effective number of directions in which features vary: trace(C)^2 / trace(C^2) of their covariance C.

    >>> round(participation_ratio(np.eye(4)), 12)
    3.0
    """
    return centre(x, name="x").pr


def expected_cka(pr_x: float, pr_y: float, n: int) -> float:
    """The null's exact mean, from two participation ratios and the number of rows.

    >>> round(expected_cka(22.6, 22.6, 1024), 4)
    0.0221
    """
    return math.sqrt(pr_x * pr_y) / (n - 1)


def permutation_null(x: Any, y: Any, *, rng: np.random.Generator, permutations: int = 200) -> PermutationNull:
    """The null of `linear_cka(x, y)` under shuffles of the rows of `y`."""
    return _shuffle_rows(*_centre_both(x, y), rng=rng, permutations=permutations)


def align_rows(
    train: Recording, test: Recording, *, block: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Training rows, and the rows of both recordings that meet them at the same step since an episode's start.

    Slots come in blocks (default: one block of them all); in each, the first half of the training slots meets the
    second half of both recordings. More blocks than one fill up what is lost where episodes end and slots fall out
    of step. There are at most half a block of slots times the steps.
    """
    geometry = train.geometry
    block = block or geometry.slots
    if test.geometry != geometry or geometry.slots % block:
        raise UsageError(
            f"The recordings have the geometries {geometry} and {test.geometry}: controls need one geometry of whole "
            f"blocks of {block} slots."
        )
    # (steps, slots) to (blocks, steps, slots of a block): rows of an earlier block come first.
    grid = np.arange(geometry.rows).reshape(geometry.steps, -1, block).transpose(1, 0, 2)
    half = block // 2
    first, second = grid[..., :half], grid[..., half:]
    ages = train.since_start
    aligned = (ages[first] == ages[second]) & (ages[first] == test.since_start[second])
    most = half * geometry.steps
    return first[aligned][:most], second[aligned][:most]


def align_controls(
    train: tuple[Recording, Floats],
    test: tuple[Recording, Floats],
    *,
    rng: np.random.Generator,
    permutations: int = 200,
    block: int | None = None,
) -> tuple[PermutationNull, PermutationNull]:
    """The 2x2 control: what train-versus-test CKA on different inputs is made of (paper, Table "ckacontrol").

    The same training rows meet three partners at the same step: held-out rows (A), other training rows (C), and both of
    these shuffled (B, D). If C is as high as A, the level set plays no part; if shuffling collapses both, what is left
    is the alignment of timesteps. The first null is that against held-out rows (A, B), the second is C and D.
    """
    rows, partners = align_rows(train[0], test[0], block=block)
    if len(rows) < LEAST_ALIGNED:
        raise UsageError(
            f"Only {len(rows)} of {train[0].geometry.rows // 2} rows meet at the same step since an episode's start: "
            "use a geometry with fewer steps per slot."
        )
    left = centre(train[1][rows], name="train")
    against_test, against_train = (
        _shuffle_rows(left, centre(side[partners], name="partner"), rng=rng, permutations=permutations)
        for side in (test[1], train[1])
    )
    return against_test, against_train


def centre(features: Any, *, name: str) -> Centred:
    """The checked, centred and scaled side that everything else computes with."""
    given = np.asarray(features)
    if given.ndim != 2 or given.dtype.kind not in "fiub":
        raise UsageError(
            f"`{name}` is {given.dtype} of shape {given.shape}: CKA needs a matrix of numbers, one row per input."
        )
    if len(given) < LEAST_ROWS:
        raise UsageError(f"`{name}` has {len(given)} rows: CKA means nothing below {LEAST_ROWS}.")
    values = given.astype(np.float64)
    is_finite = np.isfinite(values).all(axis=1)
    if not is_finite.all():
        raise UsageError(
            f"`{name}` holds a value that is not finite (row {np.argmin(is_finite)}): CKA is not defined."
        )
    varies = (values != values[:1]).any(axis=0)
    if not varies.any():
        raise UsageError(f"All rows of `{name}` are equal: features that do not vary have no CKA.")
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


def _centre_both(x: Any, y: Any) -> tuple[Centred, Centred]:
    if len(x) != len(y):
        raise UsageError(
            f"CKA needs as many rows on both sides, and these have {len(x)} and {len(y)}: take the rows that belong "
            "together."
        )
    return centre(x, name="x"), centre(y, name="y")


def _compare(left: Centred, right: Centred) -> float:
    product = left.columns.T @ right.columns
    return float(np.vdot(product, product))


def _shuffle_rows(
    left: Centred, right: Centred, *, rng: np.random.Generator, permutations: int
) -> PermutationNull:
    """The null of two sides. A shuffle costs one d x d product: norms, means and ranks do not change under it.

    The products run in float32 (relative rounding about 1e-6, far below the null's Monte Carlo error), the
    sums of their squares and the observed value in float64.
    """
    if permutations < 2:
        raise UsageError(f"{permutations} permutations give no null: take at least 2.")
    n = len(left.columns)
    orders = np.stack([rng.permutation(n) for _ in range(permutations)])
    turned, rows = left.columns.T.astype(np.float32), right.columns.astype(np.float32)
    values = np.empty(permutations)
    for start in range(0, permutations, _TOGETHER):
        some = orders[start : start + _TOGETHER]
        side_by_side = rows[some.T].reshape(n, -1)
        products = (turned @ side_by_side).reshape(len(turned), len(some), -1)
        values[start : start + len(some)] = np.square(products, dtype=np.float64).sum(axis=(0, 2))
    observed = _compare(left, right)
    return PermutationNull(
        observed=observed,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)),
        exact_mean=expected_cka(left.pr, right.pr, n),
        n=n,
        permutations=permutations,
        p_value=float(1 + (values >= observed).sum()) / (1 + permutations),
    )
