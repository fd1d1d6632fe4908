"""The exact sign-flip test: how extreme a mean is among all ways of flipping the runs' signs.

It assumes only that a run's value is as likely to lie above zero as below by the same amount, so it holds at
any n and any shape that is symmetric. Its p cannot be smaller than 2 / 2^n, and the result
says so.

References:
    Fisher, R. A. (1935). The Design of Experiments. Oliver and Boyd, sec. 21.
    Phipson, B. & Smyth, G. K. (2010). Permutation p-values should never be zero. Statistical Applications in
    Genetics and Molecular Biology, 9(1), article 39 (drawn flips).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import Floats, finite_sample

#: Beyond this many runs the flips are drawn instead of enumerated.
MAX_EXACT = 20
_DRAWN = 100_000


class SignFlip(NamedTuple):
    """Two-sided p of the sign-flip test."""

    p: float
    """Two-sided p; no shape is assumed but symmetry."""
    smallest: float
    """The smallest p that this number of runs allows (or that the number of drawn flips allows)."""


def sign_flip_test(values: npt.ArrayLike, *, rng: np.random.Generator) -> SignFlip:
    """Two-sided sign-flip p of a mean of zero.

    >>> sign_flip_test([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], rng=np.random.default_rng(0)).p
    0.03125
    """
    sample = finite_sample(values, "values")
    total = abs(float(sample.sum()))
    if sample.size <= MAX_EXACT:
        sums = np.abs(_all_sums(sample))
        p = float(np.count_nonzero(sums >= total * (1 - 1e-12)) / sums.size)
        return SignFlip(p, 1 / sums.size)
    sums = np.abs(_drawn_sums(sample, rng))
    # The observed signs are one of the flips.
    p = float((np.count_nonzero(sums >= total * (1 - 1e-12)) + 1) / (_DRAWN + 1))
    return SignFlip(p, 1 / (_DRAWN + 1))


def _drawn_sums(values: Floats, rng: np.random.Generator) -> Floats:
    """Sums under flips drawn at random."""
    signs = rng.integers(0, 2, size=(_DRAWN, values.size), dtype=np.int8) * 2.0 - 1
    return np.asarray(signs @ values)


def _all_sums(values: Floats) -> Floats:
    """Sums under all flips, the first sign held (the other half only mirrors them)."""
    sums = values[:1]
    for value in values[1:]:
        sums = np.concatenate([sums + value, sums - value])
    return sums
