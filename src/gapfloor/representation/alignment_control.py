"""The 2x2 control: what train-versus-test CKA on different inputs is made of.

The same training rows X meet three partners at the same step since the episode's start: held-out rows (A), other
training rows (C), and both of these shuffled (B, D). If C is as high as A, the level set plays no part; if shuffling
collapses both, what is left is the alignment of timesteps (paper, Table "ckacontrol").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.representation.linear_similarity import Floats, centre
from gapfloor.representation.recording import Recording
from gapfloor.representation.shuffled_null import PermutationNull, shuffle_rows

#: With fewer aligned rows the block says nothing.
LEAST_ALIGNED = 16


@dataclass(frozen=True, kw_only=True)
class AlignmentControl:
    """The 2x2 block and how its parts compare."""

    n: int
    """Aligned rows behind each of the four values."""
    test: PermutationNull
    """Train v. test: observed A, shuffled mean B."""
    train: PermutationNull
    """Train v. train: observed C, shuffled mean D."""


@dataclass(frozen=True, eq=False)
class AlignedRows:
    """Rows of the two recordings that meet at the same step since an episode's start."""

    x: npt.NDArray[np.int64]
    """Training rows; `partner` are the rows of both recordings that meet them."""
    partner: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.x)


def align_rows(train: Recording, test: Recording, *, block: int | None = None) -> AlignedRows:
    """The rows behind A and C, at most half a block of slots times the steps.

    Slots come in blocks (default: one block of them all); in each, the first half of the training slots meets the
    second half of both recordings. More blocks than one fill up what is lost where episodes end and slots fall out
    of step.
    """
    geometry = train.geometry
    block = block or geometry.slots
    if test.geometry != geometry or geometry.slots % block:
        raise UsageError(
            f"The recordings have the geometries {geometry} and {test.geometry}: controls need one geometry of whole "
            f"blocks of {block} slots."
        )
    # (steps, slots) to (blocks, steps, slots of a block): rows of an earlier block come first.
    grid = np.arange(geometry.rows).reshape(geometry.steps, -1, block).transpose(1, 0, 2)
    half = block // 2
    first, second = grid[..., :half], grid[..., half:]
    ages = train.since_start
    aligned = (ages[first] == ages[second]) & (ages[first] == test.since_start[second])
    most = half * geometry.steps
    return AlignedRows(x=first[aligned][:most], partner=second[aligned][:most])


def align_controls(
    train: tuple[Recording, Floats],
    test: tuple[Recording, Floats],
    *,
    rng: np.random.Generator,
    permutations: int = 200,
    block: int | None = None,
) -> AlignmentControl:
    """The 2x2 block of one encoder's features on its training and held-out recordings (see `align_rows`)."""
    rows = align_rows(train[0], test[0], block=block)
    n = len(rows)
    if n < LEAST_ALIGNED:
        raise UsageError(
            f"Only {n} of {train[0].geometry.rows // 2} rows meet at the same step since an episode's start: use a "
            "geometry with fewer steps per slot."
        )
    left = centre(train[1][rows.x], name="train")
    against_test, against_train = (
        shuffle_rows(left, centre(side[rows.partner], name="partner"), rng=rng, permutations=permutations)
        for side in (test[1], train[1])
    )
    return AlignmentControl(n=n, test=against_test, train=against_train)
