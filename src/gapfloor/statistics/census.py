"""The error of a census: every level is played equally often, so the choice of levels adds nothing to it.

Of a mean over these levels only the chance within levels remains (actions, and the generator's own dice). A
difference between two sets of levels still asks about other levels, so its tests take level means as their units.

References:
    Cochran, W. G. (1977). Sampling Techniques, 3rd ed. Wiley, ch. 5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import Floats, Ints


def level_means(returns: npt.ArrayLike, levels: npt.ArrayLike) -> Floats:
    """The mean return of each level, in the order of level seeds.

    >>> level_means([1.0, 3.0, 5.0, 5.0], [7, 7, 2, 2]).tolist()
    [5.0, 2.0]
    """
    values, _, place, counts = _by_level(returns, levels)
    means: Floats = np.bincount(place, weights=values) / counts
    return means


def within_level_sample(returns: npt.ArrayLike, levels: npt.ArrayLike) -> Floats:
    """A sample with the census's mean whose spread is the one within levels alone.

    Each level's deviations are widened so that the sample's variance (ddof=1) is the pooled variance within levels:
    tests and bootstraps for independent episodes then use the census's own error. With one episode per level the
    returns themselves are given, whose spread is too wide rather than too narrow.
    """
    values, means, place, counts = _by_level(returns, levels)
    if (counts < 2).any():
        return values
    widened = np.sqrt((values.size - 1) / (values.size - counts.size))
    sample: Floats = values.mean() + (values - means[place]) * widened
    return sample


def _by_level(returns: npt.ArrayLike, levels: npt.ArrayLike) -> tuple[Floats, Floats, Ints, Ints]:
    values = np.asarray(returns, dtype=np.float64)
    _, place, counts = np.unique(np.asarray(levels), return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=values) / counts
    return values, means, place, counts
