"""Distinct whole numbers, such as the levels of a run: counted instead of sorted where they lie close together.

The results are those of `np.unique`, which sorts all values.
"""

from __future__ import annotations

import numpy as np

from gapfloor.statistics.conventions import Ints


def distinct(values: Ints) -> Ints:
    """The distinct values in ascending order.

    >>> distinct(np.array([7, 5, 7, 5])).tolist()
    [5, 7]
    """
    counted = _counted(values)
    return np.unique(values) if counted is None else np.flatnonzero(counted[1]) + counted[0]


def places(values: Ints) -> tuple[Ints, Ints]:
    """The distinct values in ascending order, and for each value its place among them.

    >>> [part.tolist() for part in places(np.array([7, 5, 7, 5]))]
    [[5, 7], [1, 0, 1, 0]]
    """
    counted = _counted(values)
    if counted is None:
        found, place = np.unique(values, return_inverse=True)
        return found, place
    lowest, counts = counted
    order = np.cumsum(counts > 0) - 1
    return np.flatnonzero(counts) + lowest, order[values - lowest]


def _counted(values: Ints) -> tuple[int, Ints] | None:
    """The lowest value and how often each number from it on occurs; None where most of them would not occur."""
    if not values.size:
        return None
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest > 4 * values.size + 1024:
        return None
    return lowest, np.bincount(values - lowest)
