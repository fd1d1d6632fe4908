"""Slots that play through a draw of levels until their caller begins episodes itself.

Engines that reset their environments themselves share this; ProcGen's own engine follows its draw in C++.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet, draw_levels
from gapfloor.levels.draws import check_draw


class DrawnLevels(ABC):
    """Which level each slot plays, and which comes next."""

    can_begin = True
    _rewards: npt.NDArray[Any]

    def __init__(self, *, slots: int, levels: LevelSet, draw: int) -> None:
        check_draw(draw)
        if slots < 1:
            raise UsageError(f"An engine needs at least 1 slot, not {slots}.")
        self.n_slots = slots
        self._draw = functools.partial(draw_levels, levels, draw=draw, slots=slots)
        self._drawn = self._draw(episodes=16)
        self._level = self._drawn[:, 0].copy()
        self._episode = np.zeros(slots, dtype=np.int64)
        self._follows_draw, self._has_started = True, False

    @property
    def level_seeds(self) -> npt.NDArray[np.int64]:
        return self._level

    def begin(self, slot: int, level_seed: int) -> None:
        self._follows_draw = False
        self._play(slot, level_seed)
        self._rewards[slot] = 0

    @abstractmethod
    def _play(self, slot: int, level_seed: int) -> None:
        """Put a slot at the start of a level."""

    def _start(self) -> None:
        """The first levels of the draw, unless somebody has begun others."""
        if self._follows_draw and not self._has_started:
            for slot in range(self.n_slots):
                self._play(slot, int(self._level[slot]))
        self._has_started = True

    def _next_level(self, slot: int) -> int:
        """The next level of a slot's own draw."""
        self._episode[slot] += 1
        if self._episode[slot] >= self._drawn.shape[1]:
            self._drawn = self._draw(episodes=2 * self._drawn.shape[1])
        return int(self._drawn[slot, self._episode[slot]])
