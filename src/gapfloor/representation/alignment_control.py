"""The 2x2 control: what train-versus-test CKA on different inputs is made of.

The same training rows X meet three partners at the same step since the episode's start: held-out rows (A), other
training rows (C), and both of these shuffled (B, D). If C is as high as A, the level set plays no part; if shuffling
collapses both, what is left is the alignment of timesteps (paper, Table "ckacontrol").

"C equals A" is judged by exchange: if the level set plays no part, a partner slot on held-out levels and one on
training levels could be swapped, so the difference A - C is compared with that of random swaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.representation.features import Features
from gapfloor.representation.linear_similarity import Floats, centre
from gapfloor.representation.recording import Recording
from gapfloor.representation.shuffled_null import PermutationNull, shuffle_rows

#: With fewer aligned rows the block says nothing.
LEAST_ALIGNED = 16

#: A and C belong together, and both to their shuffles or not, at this level.
LEVEL = 0.05


@dataclass(frozen=True, kw_only=True)
class AlignmentControl:
    """The 2x2 block and how its parts compare."""

    n: int
    """Aligned rows behind each of the four values."""
    test: PermutationNull
    """Train v. test: observed A, shuffled mean B."""
    train: PermutationNull
    """Train v. train: observed C, shuffled mean D."""
    exchange_p: float
    """How often exchanging partner slots between the level sets makes |A - C| at least as large."""

    @property
    def is_same_on_both_sets(self) -> bool:
        """Whether A and C differ no more than exchanged slots do; not a proof that they are equal."""
        return self.exchange_p > LEVEL

    @property
    def is_alignment(self) -> bool:
        """Whether both values stand above their shuffles."""
        return max(self.test.p_value, self.train.p_value) <= LEVEL

    @property
    def is_consistent_with_alignment(self) -> bool:
        """Whether nothing but timesteps is needed to explain A and C; with few slots that is a weak statement."""
        return self.is_same_on_both_sets and self.is_alignment


@dataclass(frozen=True, eq=False)
class AlignedRows:
    """Rows of the two recordings that meet at the same step since an episode's start."""

    x: npt.NDArray[np.int64]
    """Training rows; `partner` are the rows of both recordings that meet them."""
    partner: npt.NDArray[np.int64]
    slot: npt.NDArray[np.int64]
    """The partner's slot, in which rows belong together."""

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
    return AlignedRows(
        x=first[aligned][:most],
        partner=second[aligned][:most],
        slot=(second[aligned] % geometry.slots)[:most],
    )


def align_controls(
    train: tuple[Recording, Features],
    test: tuple[Recording, Features],
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
    x = train[1].take(rows.x)
    against_test, against_train = test[1].take(rows.partner), train[1].take(rows.partner)
    left = centre(x, name="train")
    nulls = [
        shuffle_rows(left, centre(side, name="partner"), rng=rng, permutations=permutations)
        for side in (against_test, against_train)
    ]
    exchange_p = exchange_slots(
        left.columns,
        against_test.values.astype(np.float64),
        against_train.values.astype(np.float64),
        rows.slot,
        rng=rng,
        exchanges=permutations,
    )
    return AlignmentControl(n=n, test=nulls[0], train=nulls[1], exchange_p=exchange_p)


def exchange_slots(
    x: Floats,
    one: Floats,
    other: Floats,
    slot: npt.NDArray[np.integer],  # type: ignore[type-arg]
    *,
    rng: np.random.Generator,
    exchanges: int,
) -> float:
    """The two-sided p of CKA(x, one) - CKA(x, other) when whole slots are exchanged between the two partners.

    `x` has centred columns. Cross products and second moments are sums over slots, so an exchange is a sum of
    per-slot matrices: no row is touched again.
    """
    slots = np.unique(slot)
    scale = max(np.abs(one).max(), np.abs(other).max())
    shift = (one.mean(axis=0) + other.mean(axis=0)) / 2  # keeps the subtraction of means below exact
    sides = [_SlotSums.of(x, (side - shift) / scale, slot) for side in (one, other)]
    swaps = np.vstack([np.zeros(len(slots)), rng.integers(0, 2, (exchanges, len(slots)))]).astype(np.float64)
    differences = []
    for start in range(0, len(swaps), 16):
        some = swaps[start : start + 16]
        differences.append(_cka(sides, some, len(x)) - _cka(sides, 1 - some, len(x)))
    values = np.abs(np.concatenate(differences))
    # Rounding must not decide about exchanges that change nothing.
    reach = values[1:] >= values[0] * (1 - 1e-9)
    return float(1 + reach.sum()) / (1 + exchanges)


@dataclass(frozen=True, eq=False)
class _SlotSums:
    """Per slot: X'Y, Y'Y (both flattened) and the sum of Y's rows."""

    cross: Floats
    second: Floats
    first: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats, slot: npt.NDArray[np.integer]) -> _SlotSums:  # type: ignore[type-arg]
        places = [np.flatnonzero(slot == each) for each in np.unique(slot)]
        return cls(
            cross=np.stack([(x[rows].T @ y[rows]).ravel() for rows in places]),
            second=np.stack([(y[rows].T @ y[rows]).ravel() for rows in places]),
            first=np.stack([y[rows].sum(axis=0) for rows in places]),
        )


def _cka(sides: list[_SlotSums], swaps: Floats, n: int) -> Floats:
    """CKA (up to X's own norm) of x with the partner that takes slot j from side `swaps[:, j]`, one per row."""
    one, other = sides
    cross = (1 - swaps) @ one.cross + swaps @ other.cross
    second = (1 - swaps) @ one.second + swaps @ other.second
    mean = ((1 - swaps) @ one.first + swaps @ other.first) / n
    # x is centred, so the partner's mean drops out of the cross product; it does not drop out of Y'Y.
    second = second.reshape(len(swaps), mean.shape[1], -1) - n * mean[:, :, None] * mean[:, None, :]
    values: Floats = np.square(cross).sum(axis=1) / np.sqrt(np.square(second).sum(axis=(1, 2)))
    return values
