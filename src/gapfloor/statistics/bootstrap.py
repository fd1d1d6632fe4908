"""Resampled means, and the percentile intervals made of them.

The mean of n draws from n observed values has a known distribution: the n-fold convolution of their frequencies.
The resampled means are drawn from that distribution directly, one number each instead of n. The choice between three
ways depends on the values alone, so the same seed and data always give the same bytes:

- fewer than 48 values are resampled by index, several draws at a time where all their sums fit into a table;
- values on a small grid, as a few hundred whole-number returns are, are drawn from the full convolution: the paper's
  intervals depend on this stream of random numbers;
- everything else (many episodes, wide grids, real-valued returns) is drawn from one short Fourier transform. The sum
  of n draws lies within a window around its mean whose width grows with the root of n, so a transform of that width is
  enough: what would lie outside, less than 1e-15 by Bernstein's inequality, is folded back into it. On a grid the
  result is exact to rounding. Values off any grid, or on one that would need a very long transform, are put on a fine
  grid: each is split between its two neighbours so that the mean is kept, and the spread that this adds is taken out
  again. Mean and variance are then exact, and the resampled mean moves in steps of about an 800th of its standard
  error. The ends of an interval from 10,000 resamples are uncertain by twenty times as much.

References:
    Bernstein, S. (1946). The Theory of Probabilities. Gostehizdat. (The tail bound.)
    Devroye, L. (1986). Non-Uniform Random Variate Generation. Springer, ch. V.3. (Ordered uniform numbers.)
    Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall, ch. 13.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import CONFIDENCE, N_RESAMPLES, Floats, Pair

#: Largest grid for the full convolution.
_MAX_GRID = 1 << 18
#: Most points that a grid can have; values that need more lie on none.
_MAX_POINTS = 1 << 20
#: Below this sample size resampling by index is faster than the convolution.
_MIN_CONVOLVED = 48
#: Largest table of sums of several draws: one that stays in the fastest cache.
_MAX_TABLE = 1 << 13
#: Longest transform of a grid's own step; beyond it the values are put on a coarser grid.
_LONGEST = 1 << 17
#: Points of the window for values that lie on no grid.
_FINE = 1 << 14
#: -log of the probability that a sum lies outside the window.
_LOG_OUTSIDE = 36.0


def resampled_means(values: Floats, *, n_resamples: int = N_RESAMPLES, rng: np.random.Generator) -> Floats:
    """Means of `n_resamples` bootstrap samples of `values` (sorted by the caller), in random order."""
    if values.size < _MIN_CONVOLVED:
        return _means_by_index(values, n_resamples=n_resamples, rng=rng)
    points, chances, _ = _distribution(values)
    cumulative = np.cumsum(chances)
    drawn = np.searchsorted(cumulative, rng.random(n_resamples) * cumulative[-1], side="right")
    return np.asarray(points[np.minimum(drawn, points.size - 1)])


def resampled_differences(
    first: Floats, second: Floats, *, n_resamples: int = N_RESAMPLES, rng: np.random.Generator
) -> Floats:
    """Differences of resampled means of two independent samples (each sorted by the caller).

    The means of `first` come in random order, so those of `second` may come in any: on a grid they are drawn
    as counts, which is faster still and leaves them sorted.
    """
    means = resampled_means(first, n_resamples=n_resamples, rng=rng)
    if second.size < _MIN_CONVOLVED:
        return means - _means_by_index(second, n_resamples=n_resamples, rng=rng)
    points, chances, is_small = _distribution(second)
    if is_small:
        return means - np.repeat(points, rng.multinomial(n_resamples, chances))
    # A distribution of many points has more of them than there are resamples.
    cumulative = np.cumsum(chances)
    drawn = np.searchsorted(cumulative, _ordered_uniforms(n_resamples, rng) * cumulative[-1], side="right")
    return np.asarray(means - points[np.minimum(drawn, points.size - 1)])


def _ordered_uniforms(count: int, rng: np.random.Generator) -> Floats:
    """Uniform random numbers in ascending order, without sorting: the arrival times of a Poisson process."""
    arrivals = np.cumsum(rng.standard_exponential(count + 1))
    return np.asarray(arrivals[:-1] / arrivals[-1])


def _distribution(values: Floats) -> tuple[Floats, Floats, bool]:
    """The possible means, their probabilities, and whether they come from the full convolution of a small grid."""
    grid = _grid(values)
    if grid is not None and values.size * grid[1] <= _MAX_GRID:
        return (*_convolved(values, *grid), True)
    return (*distribution_of_mean(values, None if grid is None else grid[0]), False)


def percentile_interval(resamples: Floats, *, confidence: float = CONFIDENCE) -> Pair:
    """The central `confidence` part of bootstrap resamples; equals `np.quantile`, which sorts more."""
    tail, last = (1 - confidence) / 2, resamples.size - 1
    places = [tail * last, (1 - tail) * last]
    ends = [(int(place), min(int(place) + 1, last)) for place in places]
    found = np.partition(resamples, sorted({at for pair in ends for at in pair}))
    low, high = (
        float(found[below] + (place - below) * (found[above] - found[below]))
        for place, (below, above) in zip(places, ends, strict=True)
    )
    return low, high


def mean_interval(values: Floats, *, confidence: float, n_resamples: int, rng: np.random.Generator) -> Pair:
    """Percentile interval of the mean of two or more `values` (sorted by the caller)."""
    means = resampled_means(values, n_resamples=n_resamples, rng=rng)
    return percentile_interval(means, confidence=confidence)


def difference_interval(
    first: Floats, second: Floats, *, confidence: float, n_resamples: int, rng: np.random.Generator
) -> Pair:
    """Percentile interval of the difference of the means of two samples of two or more values, both resampled."""
    differences = resampled_differences(first, second, n_resamples=n_resamples, rng=rng)
    return percentile_interval(differences, confidence=confidence)


def _grid(values: Floats) -> tuple[float, int] | None:
    """The step of the grid that `values` lie on and the number of its points, or None if there is none."""
    gaps = np.diff(values)
    gaps = gaps[gaps > 0]
    span = float(values[-1] - values[0])
    if not gaps.size:
        return 1.0, 1
    step = float(gaps.min())
    for _ in range(4):
        steps = gaps / step
        distance = np.abs(steps - np.rint(steps))
        if distance.max() < 1e-9 * max(1.0, span / step):
            return step, int(np.rint(span / step)) + 1
        # The step of the grid divides what is left over (Euclid); real-valued data run out of rounds.
        step = float((distance * step)[distance > 1e-9].min())
        if span / step > _MAX_POINTS:
            return None
    return None


def _convolved(values: Floats, step: float, points: int) -> tuple[Floats, Floats]:
    """The possible means of a resample and their probabilities."""
    from scipy import fft  # few commands need it

    n = values.size
    frequency = np.bincount(np.rint((values - values[0]) / step).astype(np.int64), minlength=points) / n
    length = n * (points - 1) + 1
    size = fft.next_fast_len(length, real=True)
    density = fft.irfft(_power(fft.rfft(frequency, size), n), size)[:length]
    # The transform leaves errors of about 1e-17 where the probability is zero: nothing is drawn there.
    likely = np.flatnonzero(density > 1e-15)
    places = np.arange(likely[0], likely[-1] + 1)
    chances = np.maximum(density[places], 0.0)
    return values[0] + places * (step / n), chances / chances.sum()


def _means_by_index(values: Floats, *, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Sums of uniformly drawn values, as many draws at a time as a table of their sums allows."""
    n = left = values.size
    total = np.zeros(n_resamples)
    # Adding to 0.0 turns -0.0 into 0.0.
    table, draws = 0.0 + values, 1
    while draws < n and table.size * n <= _MAX_TABLE:
        table, draws = np.add.outer(table, values).ravel(), draws + 1
    while left:
        if draws > left:
            table, draws = values, 1
        kind = np.uint16 if table.size <= 1 << 16 else np.int64
        total += table.take(rng.integers(0, table.size, size=n_resamples, dtype=kind))
        left -= draws
    return np.asarray(total / n)


def distribution_of_mean(values: Floats, step: float | None) -> tuple[Floats, Floats]:
    """The possible means of n draws from n `values` (sorted by the caller) and their probabilities.

    Args:
        values: the sample.
        step: the step of the grid that they lie on, or None.
    """
    return _windowed(values.tobytes(), step)


@lru_cache(maxsize=64)  # every agent of a study is compared with the same floor
def _windowed(data: bytes, step: float | None) -> tuple[Floats, Floats]:
    from scipy import fft  # few commands need it

    values = np.frombuffer(data)
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
    density = fft.irfft(_power(fft.rfft(frequency / n), n), size)
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
