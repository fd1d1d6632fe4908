"""Entropy in nats over raw actions and over classes of equivalent actions (Section "Calibration")."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition, sum_within

Floats = npt.NDArray[np.float64]


def entropy(probabilities: Floats) -> Floats:
    """Entropy of each row in nats; zero probabilities contribute nothing.

    >>> float(entropy(np.array([[0.5, 0.5, 0.0]]))[0]) == np.log(2)
    True
    """
    logs = np.log(probabilities, where=probabilities > 0, out=np.zeros_like(probabilities))
    total: Floats = -(probabilities * logs).sum(axis=1)
    return total


def merged_entropy(probabilities: Floats, partition: Partition) -> Floats:
    """Entropy over classes in nats: never more than the entropy over raw actions."""
    return entropy(sum_within(probabilities, partition))
