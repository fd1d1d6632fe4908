"""Level sets, and the schedule of a cell: which episodes count, on which levels, known before play.

A draw samples levels from a set, as the paper does; a census plays every level of the set equally often. In a
draw, counting is balanced: every slot contributes the same number of episodes, after the same number of burn-in
episodes, so that neither short nor long episodes are favoured (the paper's "balanced per-slot episode
counting and an episode burn-in").

ProcGen seeds one Mersenne twister with `rand_seed`, takes one number from it for each slot, seeds that
slot's own twister with the number, and takes one number modulo the size of the level set for each episode.
The sequence of a slot therefore depends on the draw's seed and the slot's position alone: neither on the
game nor on the actions nor on how many slots there are. `tests/engines` checks the real engine against this; other
engines use the same law, so that a draw means the same thing everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError

#: Level seeds are drawn below this number when no range is given (the engine's 31-bit seeds).
ALL_LEVELS_STOP = 2**31 - 1


@dataclass(frozen=True)
class LevelSet:
    """The levels `start <= seed < stop`.

    >>> LevelSet.parse("1000:1100").n
    100
    >>> str(LevelSet.parse("all")), LevelSet.parse("all").is_everything
    ('all', True)
    """

    start: int
    stop: int

    @property
    def n(self) -> int:
        """How many levels the set has."""
        return self.stop - self.start

    @property
    def is_everything(self) -> bool:
        """Whether this is the whole distribution, which is disjoint from nothing."""
        return self.start == 0 and self.stop == ALL_LEVELS_STOP

    def __str__(self) -> str:
        return "all" if self.is_everything else f"{self.start}:{self.stop}"

    def __contains__(self, level_seed: int) -> bool:
        return self.start <= level_seed < self.stop

    @classmethod
    def parse(cls, text: str | range | LevelSet) -> LevelSet:
        """Read `0:200` (half-open) or `all`; a range of Python's means the same levels.

        >>> LevelSet.parse(range(200)) == LevelSet.parse("0:200")
        True
        """
        if isinstance(text, range) and text.step == 1:
            text = f"{text.start}:{text.stop}"
        if isinstance(text, LevelSet):
            return text
        if isinstance(text, range):
            raise UsageError(f"{text} leaves levels out: a level set has every level from START to STOP.")
        if text.strip() == "all":
            return cls(0, ALL_LEVELS_STOP)
        match = re.fullmatch(r"\s*(\d+):(\d+)\s*", text)
        if match is None:
            raise UsageError(
                f"'{text}' is not a level set: write START:STOP (e.g. 0:200; STOP is not included) or all."
            )
        start, stop = int(match[1]), int(match[2])
        if start >= stop:
            raise UsageError(f"The level set '{text}' is empty: STOP must be greater than START.")
        if stop > ALL_LEVELS_STOP:
            raise UsageError(f"The level set '{text}' ends beyond the last level seed, {ALL_LEVELS_STOP}.")
        return cls(start, stop)


def check_disjoint(train: LevelSet, test: LevelSet) -> None:
    """Refuse two ranges that share levels; `all` is accepted, because nothing is disjoint from it."""
    first, stop = max(train.start, test.start), min(train.stop, test.stop)
    if first < stop and not (train.is_everything or test.is_everything):
        raise UsageError(
            f"The level sets {train} and {test} share the levels {first}:{stop}: a gap needs disjoint sets, e.g. 0:200 "
            "for train and 1000:1100 for test."
        )


#: A census beyond this is a mistake (the whole distribution has 2**31 levels).
MOST_CENSUS_EPISODES = 1_000_000


def draw_levels(levels: LevelSet, *, draw: int, slots: int, episodes: int) -> npt.NDArray[np.int64]:
    """The level seeds of the first `episodes` episodes of each slot, shape (slots, episodes).

    >>> draw_levels(LevelSet(0, 200), draw=7, slots=2, episodes=3).tolist()
    [[143, 153, 144], [93, 35, 177]]
    """
    check_draw(draw)
    slot_seeds = _twister(draw).random_raw(slots)
    rows = [_twister(int(seed)).random_raw(episodes).astype(np.int64) % levels.n for seed in slot_seeds]
    drawn: npt.NDArray[np.int64] = np.stack(rows) + levels.start
    return drawn


def check_draw(draw: int) -> None:
    """Refuse a draw seed that the engine would misread (it ends the process on some)."""
    if not 0 <= draw < 2**31 - 1:
        raise UsageError(f"The draw seed {draw} is out of range: use a whole number from 0 to {2**31 - 2}.")


def _twister(seed: int) -> np.random.MT19937:
    bits = np.random.MT19937()
    # The classic seeding is the one that C++'s std::mt19937 uses; numpy keeps it for RandomState.
    bits._legacy_seeding(seed)
    return bits


@dataclass(frozen=True)
class Schedule:
    """The counted episodes of a cell, in the order (slot, index)."""

    slot: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]
    level_seed: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.slot)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self.slot.tolist(), self.index.tolist(), self.level_seed.tolist(), strict=True)


def drawn_schedule(levels: LevelSet, *, draw: int, slots: int, episodes: int, burn_in: int) -> Schedule:
    """The schedule of a seeded draw: `episodes / slots` counted episodes per slot after `burn_in` uncounted ones."""
    check_counts(slots=slots, episodes=episodes, burn_in=burn_in)
    counted = episodes // slots
    drawn = draw_levels(levels, draw=draw, slots=slots, episodes=burn_in + counted)[:, burn_in:]
    slot = np.repeat(np.arange(slots, dtype=np.int32), counted)
    index = np.tile(np.arange(burn_in, burn_in + counted, dtype=np.int32), slots)
    return Schedule(slot=slot, index=index, level_seed=drawn.reshape(-1))


def census_schedule(levels: LevelSet, *, repeats: int) -> Schedule:
    """Every level `repeats` times: the slot is the level's place in its set, the index the repeat's number.

    >>> census_schedule(LevelSet(1000, 1002), repeats=2).level_seed.tolist()
    [1000, 1000, 1001, 1001]
    """
    check_census(levels, repeats=repeats)
    slot = np.repeat(np.arange(levels.n, dtype=np.int32), repeats)
    index = np.tile(np.arange(repeats, dtype=np.int32), levels.n)
    return Schedule(slot=slot, index=index, level_seed=levels.start + slot.astype(np.int64))


def check_census(levels: LevelSet, *, repeats: int) -> None:
    """Refuse a census that cannot be played."""
    if repeats < 1:
        raise UsageError(f"repeats is {repeats}: a census plays every level at least once.")
    if levels.n * repeats > MOST_CENSUS_EPISODES:
        raise UsageError(
            f"A census of {levels} has {levels.n * repeats:,} episodes, and the limit is {MOST_CENSUS_EPISODES:,}: "
            "name a smaller level set, or use draws instead of a census."
        )


def check_counts(*, slots: int, episodes: int, burn_in: int) -> None:
    """Refuse counts that cannot be balanced over the slots."""
    if slots < 1:
        raise UsageError(f"slots is {slots}: use at least 1.")
    if burn_in < 0:
        raise UsageError(f"burn_in is {burn_in}: use 0 or more.")
    if episodes < 1:
        raise UsageError(f"episodes is {episodes}: use at least 1.")
    if episodes % slots:
        below, above = episodes // slots * slots, (episodes // slots + 1) * slots
        near = f"{below} or {above}" if below else str(above)
        raise UsageError(
            f"episodes is {episodes}, which cannot be shared equally by {slots} slots: use a multiple, e.g. {near}."
        )
