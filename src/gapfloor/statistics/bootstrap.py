"""Resampled means, and the percentile intervals made of them.

The mean of n draws from n observed values has a known distribution when the values lie on a grid, as returns
in ProcGen do: the n-fold convolution of their frequencies. Then the resampled means are drawn from that
distribution directly, one uniform number each instead of n. Other values are resampled by index. Both ways
draw from the same bootstrap distribution; which one is used depends on the values alone, so a seed gives the
same bytes whenever the data are the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import fft

from gapfloor.statistics.conventions import CONFIDENCE, N_RESAMPLES, Floats, Pair

#: Largest grid for the convolution; beyond it resampling by index is as fast.
_MAX_GRID = 1 << 18
#: Below this sample size resampling by index is faster than the convolution.
_MIN_CONVOLVED = 48


def resampled_means(values: Floats, *, n_resamples: int = N_RESAMPLES, rng: np.random.Generator) -> Floats:
    """Means of `n_resamples` bootstrap samples of `values` (sorted by the caller)."""
    if values.size >= _MIN_CONVOLVED:
        grid = _grid(values)
        if grid is not None:
            return _means_on_grid(values, *grid, n_resamples=n_resamples, rng=rng)
    return _means_by_index(values, n_resamples=n_resamples, rng=rng)


def percentile_interval(resamples: Floats, *, confidence: float = CONFIDENCE) -> Pair:
    """The central `confidence` part of bootstrap resamples."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(resamples, (tail, 1 - tail))
    return float(low), float(high)


def _grid(values: Floats) -> tuple[float, int] | None:
    """The step of the grid that `values` lie on and the number of its points, or None."""
    offsets = np.unique(values) - values[0]
    span = float(offsets[-1])
    if span == 0:
        return 1.0, 1
    step = float(np.diff(offsets).min())
    for _ in range(4):
        remainder = offsets / step
        distance = np.abs(remainder - np.rint(remainder))
        if distance.max() < 1e-9 * max(1.0, span / step):
            points = int(np.rint(span / step)) + 1
            return (step, points) if values.size * points <= _MAX_GRID else None
        # The step of the grid divides what is left over (Euclid); real-valued data run out of rounds.
        step = float((distance * step)[distance > 1e-9].min())
        if span / step * values.size > _MAX_GRID:
            return None
    return None


def _means_on_grid(
    values: Floats, step: float, points: int, *, n_resamples: int, rng: np.random.Generator
) -> Floats:
    n = values.size
    frequency = np.bincount(np.rint((values - values[0]) / step).astype(np.int64), minlength=points) / n
    length = n * (points - 1) + 1
    size = fft.next_fast_len(length, real=True)
    density = fft.irfft(_power(fft.rfft(frequency, size), n), size)[:length]
    # The transform leaves errors of about 1e-17 around zero probabilities; what lies outside them is never
    # drawn, and searching the rest alone is faster.
    likely = np.flatnonzero(density > 1e-15)
    first = int(likely[0])
    cumulative = np.cumsum(np.maximum(density[first : likely[-1] + 1], 0.0))
    drawn = np.searchsorted(cumulative, rng.random(n_resamples) * cumulative[-1], side="right")
    return np.asarray(values[0] + (first + np.minimum(drawn, cumulative.size - 1)) * (step / n))


def _power(base: npt.NDArray[np.complex128], exponent: int) -> npt.NDArray[np.complex128]:
    """`base ** exponent` by squaring, which numpy does not do for complex numbers."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result


def _means_by_index(values: Floats, *, n_resamples: int, rng: np.random.Generator) -> Floats:
    """One draw of every resample at a time: sums run along memory, and memory stays small."""
    n = values.size
    kind = np.uint8 if n <= 256 else np.uint16 if n <= 65_536 else np.int64
    total = np.zeros(n_resamples)
    for _ in range(n):
        total += values[rng.integers(0, n, size=n_resamples, dtype=kind)]
    return np.asarray(total / n)


def resampled_rows(n: int, *, n_resamples: int = N_RESAMPLES, rng: np.random.Generator) -> Floats:
    """How often each of `n` units is drawn, one row a resample: weights for any linear statistic."""
    picked = rng.integers(0, n, size=(n_resamples, n), dtype=np.int32)
    picked += (np.arange(n_resamples, dtype=np.int32) * n)[:, None]
    return np.bincount(picked.ravel(), minlength=n_resamples * n).reshape(n_resamples, n).astype(np.float64)
