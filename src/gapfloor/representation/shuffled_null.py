"""The CKA of rows that do not belong together: the row-permutation null and its exact mean.

Under a uniform permutation of one side's rows the mean of linear CKA is exactly sqrt(PR_X PR_Y) / (n - 1): for
centred K = XX' and L = YY', E[PLP'] = trace(L) / (n - 1) on the centred subspace, so E[trace(K PLP')] is
trace(K) trace(L) / (n - 1), and trace / Frobenius norm is the square root of the participation ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.errors import UsageError
from gapfloor.representation.linear_similarity import Centred, centre_both, compare

#: Shuffles that are multiplied at once: wide enough for the matrix product, small enough for the cache.
_TOGETHER = 8


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


def expected_cka(pr_x: float, pr_y: float, n: int) -> float:
    """The null's exact mean, from two participation ratios and the number of rows.

    >>> round(expected_cka(22.6, 22.6, 1024), 4)
    0.0221
    """
    return math.sqrt(pr_x * pr_y) / (n - 1)


def permutation_null(x: Any, y: Any, *, rng: np.random.Generator, permutations: int = 200) -> PermutationNull:
    """The null of `linear_cka(x, y)` under shuffles of the rows of `y`."""
    return shuffle_rows(*centre_both(x, y), rng=rng, permutations=permutations)


def shuffle_rows(
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
    observed = compare(left, right)
    return PermutationNull(
        observed=observed,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)),
        exact_mean=expected_cka(left.pr, right.pr, n),
        n=n,
        permutations=permutations,
        p_value=float(1 + (values >= observed).sum()) / (1 + permutations),
    )
