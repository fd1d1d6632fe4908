"""Kendall's rank correlation with its permutation p: does one thing fall as the other falls?

A grid of temperatures has few points and no distribution to speak of, so the p is counted over all orders of the
points. It cannot fall below 2 / n! (without ties), which is said beside it.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import NAN, Floats

#: Beyond this many points the orders are drawn instead of enumerated.
MAX_EXACT = 8
_DRAWN = 20_000


@dataclass(frozen=True)
class RankCorrelation:
    """Kendall's tau-b of paired values and its two-sided permutation p."""

    tau: float
    """Kendall's tau-b."""
    p: float
    """Two-sided permutation p."""
    smallest: float
    """The smallest p that this many points allow."""
    n: int
    """Points of the grid."""
    is_exact: bool
    """Whether every order was counted; otherwise p was sampled."""
    rises_always: bool
    """Whether y rises with x at every step (ties of y do not rise)."""
    n_rises: int
    """Steps, in the order of x, at which y rises; there are n - 1."""


def rank_correlation(
    x: npt.ArrayLike, y: npt.ArrayLike, *, rng: np.random.Generator | None = None
) -> RankCorrelation:
    """Tau-b of `x` and `y`; NaN where either is constant.

    >>> found = rank_correlation([0, 1, 2, 3], [0.1, 0.2, 0.4, 0.3])
    >>> round(found.tau, 3), round(found.p, 4), found.n_rises
    (0.667, 0.3333, 2)
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or first.size < 2:
        raise UsageError(
            f"`x` and `y` need two or more paired values, but have the shapes {first.shape} and {second.shape}."
        )
    n = first.size
    pairs = np.triu_indices(n, k=1)
    signs = _signs(first[None], pairs)[0]
    mine = _signs(second[None], pairs)[0]
    scale = math.sqrt(float(np.count_nonzero(signs)) * np.count_nonzero(mine))
    ordered = second[np.argsort(first, kind="stable")]
    n_rises = int(np.count_nonzero(np.diff(ordered) > 0))
    score = abs(int(signs @ mine))
    if n <= MAX_EXACT:
        orders = np.array(list(itertools.permutations(range(n))), dtype=np.int64)
        scores = np.abs(_signs(second[orders], pairs) @ signs)
        p, smallest = float(np.mean(scores >= score)), 2 / math.factorial(n)
    else:
        generator = rng or np.random.default_rng(0)
        orders = generator.permuted(np.tile(np.arange(n), (_DRAWN, 1)), axis=1)
        scores = np.abs(_signs(second[orders], pairs) @ signs)
        p, smallest = (float(np.count_nonzero(scores >= score)) + 1) / (_DRAWN + 1), 1 / (_DRAWN + 1)
    if not scale:
        return RankCorrelation(NAN, NAN, smallest, n, n <= MAX_EXACT, False, n_rises)
    return RankCorrelation(
        float(signs @ mine) / scale, p, smallest, n, n <= MAX_EXACT, n_rises == n - 1, n_rises
    )


def _signs(rows: Floats, pairs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """The sign of every pair of each row."""
    return np.sign(rows[:, pairs[1]] - rows[:, pairs[0]]).astype(np.int64)
