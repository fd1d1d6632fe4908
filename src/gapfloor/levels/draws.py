"""The seeded draw of levels, written out so that it is known before anything is played.

ProcGen seeds one Mersenne twister with `rand_seed`, takes one number from it for each slot, seeds that
slot's own twister with the number, and takes one number modulo the size of the level set for each episode.
The sequence of a slot therefore depends on the draw's seed and the slot's position alone: neither on the
game nor on the actions nor on how many slots there are. `tests/engines` checks the real engine against this; other
engines use the same law, so that a draw means the same thing everywhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.levels.level_set import LevelSet


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
