"""Kendall's rank correlation with its permutation p.

A grid of temperatures has few points and no known distribution, so the p is counted over all orders of the points. It
cannot fall below 2 / n! (without ties), and results state that limit. The permutations are scipy's; the score is ours,
because `scipy.stats.kendalltau` has no exact p where there are ties.

References:
    Kendall, M. G. (1945). The treatment of ties in ranking problems. Biometrika, 33(3), 239-251.
    Phipson, B. & Smyth, G. K. (2010). Permutation p-values should never be zero. Statistical Applications in
    Genetics and Molecular Biology, 9(1), article 39 (drawn orders).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import NAN

#: Beyond this many points the orders are drawn at random.
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
    """Number of steps, in the order of x, at which y rises; there are n - 1 steps."""


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
    from scipy import stats

    n = first.size
    is_exact = n <= MAX_EXACT
    pairs = np.triu_indices(n, k=1)
    signs = np.sign(first[pairs[1]] - first[pairs[0]])

    def score(ordered: npt.NDArray[np.float64], axis: int = -1) -> Any:
        """Concordant minus discordant pairs; tau-b only divides it by a constant."""
        rows = np.moveaxis(ordered, axis, -1)
        return np.sign(rows[..., pairs[1]] - rows[..., pairs[0]]) @ signs

    def distance(ordered: npt.NDArray[np.float64], axis: int = -1) -> Any:
        return np.abs(score(ordered, axis))

    permuted = stats.permutation_test(
        (second,), distance, permutation_type="pairings", alternative="greater", vectorized=True,
        n_resamples=math.factorial(n) if is_exact else _DRAWN, rng=rng or np.random.default_rng(0),
    )  # fmt: skip
    n_rises = int(np.count_nonzero(np.diff(second[np.argsort(first, kind="stable")]) > 0))
    smallest = 2 / math.factorial(n) if is_exact else 1 / (_DRAWN + 1)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return RankCorrelation(NAN, NAN, smallest, n, is_exact, False, n_rises)
    untied = [float(np.count_nonzero(np.sign(each[pairs[1]] - each[pairs[0]]))) for each in (first, second)]
    tau = float(score(second)) / math.sqrt(untied[0] * untied[1])
    return RankCorrelation(tau, float(permuted.pvalue), smallest, n, is_exact, n_rises == n - 1, n_rises)
