"""An engine whose return is its episode's length: whoever favours short episodes gets another mean."""

from __future__ import annotations

import numpy as np

from gapfloor.actions.spaces import Discrete
from gapfloor.levels.schedule import LevelSet, draw_levels


def length_of(level_seed: int) -> int:
    """Most levels end at once, some last very long."""
    return 1 if level_seed % 4 else 200


class LengthEngine:
    """One point of reward a step; the level alone decides how long an episode lasts."""

    can_clone = True
    action_space = Discrete(15)
    n_actions = 15
    masks = None
    noop = 4
    action_names = tuple(str(action) for action in range(15))
    observation_shape = (1,)

    def __init__(self, slots: int, levels: LevelSet, draw: int = 0) -> None:
        self.n_slots = slots
        self._sequence = draw_levels(levels, draw=draw, slots=slots, episodes=4000)
        self._episode = np.zeros(slots, dtype=np.int64)
        self._level = self._sequence[:, 0].copy()
        self._step = np.zeros(slots, dtype=np.int64)
        self._rewards = np.zeros(slots, dtype=np.float32)
        self._firsts = np.ones(slots, dtype=bool)

    @property
    def level_seeds(self):
        return self._level

    def observe(self):
        return self._step[:, None].astype(np.uint8), self._rewards, self._firsts

    def step(self, actions):
        self._step += 1
        self._rewards = np.ones(self.n_slots, dtype=np.float32)
        self._firsts = self._step >= np.array([length_of(level) for level in self._level])
        for slot in np.flatnonzero(self._firsts):
            self._episode[slot] += 1
            self._level[slot] = self._sequence[slot, self._episode[slot]]
            self._step[slot] = 0
        return self.observe()

    def save(self, slot):
        return f"{self._level[slot]} {self._step[slot]}".encode()

    def load(self, slot, state):
        self._level[slot], self._step[slot] = (int(part) for part in state.split())

    def begin(self, slot, level_seed):
        self._level[slot], self._step[slot] = level_seed, 0

    def close(self):
        pass
