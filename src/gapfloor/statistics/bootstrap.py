"""Resampled means, and the percentile intervals made of them.

The mean of n draws from n observed values has a known distribution: the n-fold convolution of their frequencies.
The resampled means are drawn from that distribution directly, one number each instead of n.

Fewer than 48 values are resampled by index, several draws at a time where all their sums fit into a table. Values on a
small grid, as a few hundred whole-number returns are, are drawn from the full convolution: the paper's intervals depend
on this stream of random numbers. Everything else (many episodes, wide grids, real-valued returns) is drawn from the
distribution in `convolution.py`, which is exact on a grid and exact in mean and variance off one. The choice depends on
the values alone, so the same seed and data always give the same bytes.

References:
    Devroye, L. (1986). Non-Uniform Random Variate Generation. Springer, ch. V.3. (Ordered uniform numbers.)
    Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall, ch. 13.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gapfloor.statistics.conventions import CONFIDENCE, N_RESAMPLES, NO_PAIR, Floats, Pair
from gapfloor.statistics.convolution import distribution_of_mean, power

#: Largest grid for the full convolution.
_MAX_GRID = 1 << 18
#: Most points that a grid can have; values that need more lie on none.
_MAX_POINTS = 1 << 20
#: Below this sample size resampling by index is faster than the convolution.
_MIN_CONVOLVED = 48
#: Largest table of sums of several draws: one that stays in the fastest cache.
_MAX_TABLE = 1 << 13


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
    kept, ends = _quantile_places(resamples.size, confidence)
    at = dict(zip(kept, np.partition(resamples, kept)[kept].tolist(), strict=True))
    low, high = (at[below] + part * (at[above] - at[below]) for below, above, part in ends)
    return low, high


@cache
def _quantile_places(size: int, confidence: float) -> tuple[list[int], list[tuple[int, int, float]]]:
    """Which ordered values make the two ends: the places below and above each end, and how far it lies between them."""
    tail = (1 - confidence) / 2
    places = np.array([tail, 1 - tail]) * (size - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, size - 1)
    ends = list(zip(below.tolist(), above.tolist(), (places - below).tolist(), strict=True))
    return np.unique([below, above]).tolist(), ends


def mean_interval(values: Floats, *, confidence: float, n_resamples: int, rng: np.random.Generator) -> Pair:
    """Percentile interval of the mean of `values` (sorted by the caller); NaN for one value."""
    if values.size < 2:
        return NO_PAIR
    means = resampled_means(values, n_resamples=n_resamples, rng=rng)
    return percentile_interval(means, confidence=confidence)


def difference_interval(
    first: Floats, second: Floats, *, confidence: float, n_resamples: int, rng: np.random.Generator
) -> Pair:
    """Percentile interval of the difference of two means, both samples resampled; NaN where one has one value."""
    if min(first.size, second.size) < 2:
        return NO_PAIR
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
    density = fft.irfft(power(fft.rfft(frequency, size), n), size)[:length]
    # The transform leaves errors of about 1e-17 where the probability is zero: nothing is drawn there.
    likely = np.flatnonzero(density > 1e-15)
    places = np.arange(likely[0], likely[-1] + 1)
    chances = np.maximum(density[places], 0.0)
    return values[0] + places * (step / n), chances / chances.sum()


def _means_by_index(values: Floats, *, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Sums of uniformly drawn values, as many draws at a time as a table of their sums allows."""
    n = left = values.size
    total = np.zeros(n_resamples)
    table, draws = _sums(values)
    while left:
        if draws > left:
            table, draws = values, 1
        kind = np.uint16 if table.size <= 1 << 16 else np.int64
        total += table.take(rng.integers(0, table.size, size=n_resamples, dtype=kind))
        left -= draws
    return np.asarray(total / n)


def _sums(values: Floats) -> tuple[Floats, int]:
    """The sums of several draws, as many as a table of them allows, and the number of draws."""
    # Adding to 0.0 turns -0.0 into 0.0.
    table, draws = 0.0 + values, 1
    while draws < values.size and table.size * values.size <= _MAX_TABLE:
        table, draws = np.add.outer(table, values).ravel(), draws + 1
    return table, draws
