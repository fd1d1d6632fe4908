"""A partition of the actions into classes with the same effect, and argmax and entropy over those classes.

Section "Merged-Argmax Evaluation": sum the probabilities within each class, take the largest sum, then the
most probable action inside that class. Entropy in nats is over raw actions or over classes (Section "Calibration").
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError


@dataclass(frozen=True)
class Partition:
    """Class labels of the actions: classes are numbered in the order of their lowest action.

    >>> Partition.from_classes([[2, 3], [0, 1]]).classes
    ((0, 1), (2, 3))
    """

    labels: tuple[int, ...]

    @property
    def k(self) -> int:
        """The number of classes."""
        return max(self.labels) + 1

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(self.labels)

    @property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The actions of each class."""
        return tuple(
            tuple(action for action, label in enumerate(self.labels) if label == number)
            for number in range(self.k)
        )

    @classmethod
    def from_labels(cls, labels: Sequence[int]) -> Partition:
        """A partition from any labels: equal labels, same class."""
        order: dict[int, int] = {}
        return cls(tuple(order.setdefault(int(label), len(order)) for label in labels))

    @classmethod
    def from_classes(cls, classes: Iterable[Iterable[int]]) -> Partition:
        """A partition from lists of actions; every action must occur exactly once."""
        label_of: dict[int, int] = {}
        for number, members in enumerate(classes):
            for action in members:
                if action in label_of:
                    raise UsageError(
                        f"Action {action} is in two classes: every action belongs to exactly one."
                    )
                label_of[action] = number
        if sorted(label_of) != list(range(len(label_of))):
            raise UsageError(f"The classes name the actions {sorted(label_of)}: some action is missing.")
        return cls.from_labels([label_of[action] for action in range(len(label_of))])

    def meet(self, other: Partition) -> Partition:
        """The coarsest partition finer than both: actions stay together only if both keep them together."""
        pairs: dict[tuple[int, int], int] = {}
        return Partition.from_labels(
            [pairs.setdefault(pair, len(pairs)) for pair in zip(self.labels, other.labels, strict=True)]
        )


def merged_argmax(probabilities: npt.NDArray[np.float64], partition: Partition) -> npt.NDArray[np.int64]:
    """The most probable action of the most probable class, row by row.

    Ties go to the class with the lowest action and, within a class, to the lowest action.
    """
    sums = sum_within(probabilities, partition)
    labels = np.asarray(partition.labels)
    inside = labels[None, :] == np.argmax(sums, axis=1)[:, None]
    chosen: npt.NDArray[np.int64] = np.argmax(np.where(inside, probabilities, -1.0), axis=1)
    return chosen


def sum_within(probabilities: npt.NDArray[np.float64], partition: Partition) -> npt.NDArray[np.float64]:
    """Probabilities summed within each class, shape (rows, classes).

    Summed action after action: a matrix product, or a sum over a slice, would let the number of rows decide the
    order of additions, and with it the last bit.
    """
    columns = [
        functools.reduce(np.add, [probabilities[:, action] for action in members])
        for members in partition.classes
    ]
    return np.stack(columns, axis=1)


def entropy(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Entropy of each row in nats; zero probabilities contribute nothing.

    >>> float(entropy(np.array([[0.5, 0.5, 0.0]]))[0]) == np.log(2)
    True
    """
    logs = np.log(probabilities, where=probabilities > 0, out=np.zeros_like(probabilities))
    total: npt.NDArray[np.float64] = -(probabilities * logs).sum(axis=1)
    return total


def merged_entropy(probabilities: npt.NDArray[np.float64], partition: Partition) -> npt.NDArray[np.float64]:
    """Entropy over classes in nats: never more than the entropy over raw actions."""
    return entropy(sum_within(probabilities, partition))
