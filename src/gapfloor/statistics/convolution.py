"""The distribution of a sum of many draws, from one short Fourier transform.

The sum of n draws lies within a window around its mean whose width grows with the root of n, so a transform of that
width is enough: what would lie outside, less than 1e-15 by Bernstein's inequality, is folded back into it. On a grid
the result is exact to rounding. Values off any grid, or on one that would need a very long transform, are put on a fine
grid: each is split between its two neighbours so that the mean is kept, and the spread that this adds is taken out
again. Mean and variance are then exact, and the resampled mean moves in steps of about an 800th of its standard error.
The ends of an interval from 10,000 resamples are uncertain by twenty times as much.

References:
    Bernstein, S. (1946). The Theory of Probabilities. Gostehizdat. (The tail bound.)
    Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall, ch. 13.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import Floats

#: Longest transform of a grid's own step; beyond it the values are put on a coarser grid.
_LONGEST = 1 << 17
#: Points of the window for values that lie on no grid.
_FINE = 1 << 14
#: -log of the probability that a sum lies outside the window.
_LOG_OUTSIDE = 36.0


def distribution_of_mean(values: Floats, step: float | None) -> tuple[Floats, Floats]:
    """The possible means of n draws from n `values` (sorted by the caller) and their probabilities.

    Args:
        values: the sample.
        step: the step of the grid that they lie on, or None.
    """
    return _cached(values.tobytes(), step)


@lru_cache(maxsize=64)
def _cached(data: bytes, step: float | None) -> tuple[Floats, Floats]:
    # Every agent of a study is compared with the same floor.
    return _distribution(np.frombuffer(data), step)


def _distribution(values: Floats, step: float | None) -> tuple[Floats, Floats]:
    from scipy import fft  # few commands need it

    n, mean, variance = values.size, float(values.mean()), float(values.var())
    if values[0] == values[-1]:
        return values[:1], np.ones(1)
    below, above = (_reach(n, variance, float(b)) for b in (mean - values[0], values[-1] - mean))
    below, above = min(below, n * (mean - values[0])), min(above, n * (values[-1] - mean))
    if step is None or (below + above) / step > _LONGEST:
        step = (below + above) / _FINE
    size = fft.next_fast_len(int((below + above) / step) + 4, real=True)
    # Places are counted from the one next to the mean: small numbers keep the digits of the transform.
    places = (values - mean) / step
    origin = float(places[0] - np.rint(places[0]))
    places -= origin
    lower = np.floor(places + 1e-9)
    share = np.clip(places - lower, 0.0, 1.0)
    share[share < 1e-6] = 0.0
    index = lower.astype(np.int64)
    frequency = np.bincount(index % size, weights=1 - share, minlength=size)
    frequency += np.bincount((index + 1) % size, weights=share, minlength=size)
    density = fft.irfft(power(fft.rfft(frequency / n), n), size)
    lowest = int(np.ceil(-below / step - n * origin)) - 1
    total = np.arange(lowest, lowest + size)
    chances = np.roll(density, -(lowest % size))  # the probability of a total is at its remainder
    # Where the transform holds nothing but its rounding errors nothing is drawn.
    likely = np.flatnonzero(chances > 1e-15 + n * 1e-16 * float(chances.max()))
    kept = slice(int(likely[0]), int(likely[-1]) + 1)
    added = float(np.mean(share * (1 - share))) * step**2
    shrink = np.sqrt(variance / (variance + added))
    points = mean + (total[kept] * (step / n) + origin * step) * shrink
    chances = np.maximum(chances[kept], 0.0)
    return points, chances / chances.sum()


def _reach(n: int, variance: float, largest: float) -> float:
    """How far a sum of n draws strays from its mean on one side (Bernstein's bound, solved for the distance)."""
    linear = largest * _LOG_OUTSIDE / 3
    return linear + float(np.sqrt(linear**2 + 2 * _LOG_OUTSIDE * n * variance))


def power(base: npt.NDArray[np.complex128], exponent: int) -> npt.NDArray[np.complex128]:
    """`base ** exponent` by squaring, which numpy does not do for complex numbers."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result
