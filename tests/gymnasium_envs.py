"""Environments small enough for tests, each keeping or breaking one part of the contract."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv


class Corridor(gymnasium.Env):
    """Walk right to the end of a corridor whose length is the level's; every step costs, some floor is slippery."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"]}
    action_names: ClassVar[list[str]] = ["left", "noop", "right"]

    def __init__(self, slip: float = 0.2, most: int = 30, render_mode: str | None = None) -> None:
        self.slip, self.most, self.render_mode = slip, most, render_mode
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(0, 100, (4,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length = int(self.np_random.integers(3, 12))
        self.paint = float(self.np_random.random())
        self.place, self.steps = 0, 0
        return self._observation(), {}

    def step(self, action):
        move = int(action) - 1
        if self.np_random.random() < self.slip:
            move = 0
        self.place = max(0, self.place + move)
        self.steps += 1
        is_there = self.place >= self.length
        return self._observation(), 1.0 if is_there else -0.1, is_there, self.steps >= self.most, {}

    def _observation(self):
        return np.array([self.place, self.length, self.steps, self.paint], dtype=np.float32)

    def render(self):
        return np.full((64, 640, 3), min(255, 10 * self.place), dtype=np.uint8)


class Rebuilding(Corridor):
    """Rebuilds itself when it is copied, and forgets where it was: only replay can keep its state."""

    def __reduce__(self):
        return Rebuilding, (self.slip, self.most)


class Remembering(Corridor):
    """Its levels depend on how many episodes it has played."""

    played = 0

    def reset(self, *, seed=None, options=None):
        self.played += 1
        super().reset(seed=seed)
        self.length += self.played % 3
        return self._observation(), {}


class Global(Corridor):
    """Takes its luck from Python's global random state."""

    def step(self, action):
        return super().step(action if random.random() < 0.7 else 1)


class Constant(Corridor):
    """Every seed is the same level."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=0)
        return self._observation(), {}


class Endless(Corridor):
    """Nothing ever ends."""

    def step(self, action):
        observation, reward, *_ = super().step(action)
        return observation, reward, False, False, {}


class Mixed(Corridor):
    """An observation of every kind that fits into arrays; actions that start at 5."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(3, start=5)
        self.observation_space = spaces.Dict(
            {
                "where": spaces.Box(0, 100, (4,), np.float32),
                "half": spaces.Discrete(2),
                "inner": spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([4, 5]))),
                "words": spaces.Text(20),
            }
        )

    def step(self, action):
        assert 5 <= action < 8
        return super().step(action - 5)

    def _observation(self):
        where = super()._observation()
        inner = (np.array([1, 0], dtype=np.int8), np.array([self.steps % 4, 4]))
        return {"where": where, "half": self.place % 2, "inner": inner, "words": f"to {self.length}"}


class OldGym:
    """The interface of the old gym."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(0, 1, (1,), np.float32)
    metadata: ClassVar[dict[str, Any]] = {}

    def reset(self, seed=None):
        return np.zeros(1, dtype=np.float32)

    def step(self, action):
        return np.zeros(1, dtype=np.float32), 0.0, False, {}


class Answering(Corridor):
    """Answers a step with what a test puts into `answer`, e.g. another reward."""

    answer: ClassVar[dict[str, Any]] = {}

    def step(self, action):
        names = ("observation", "reward", "terminated", "truncated", "info")
        return tuple((dict(zip(names, super().step(action), strict=True)) | self.answer).values())


class Doubling(gymnasium.RewardWrapper):
    """A wrapper to name on the command line."""

    def reward(self, reward):
        return 2 * reward


def corridor(slip=0.2, most=30, render_mode=None):
    return Corridor(slip, most, render_mode)


def rebuilding():
    return Rebuilding()


def remembering():
    return Remembering()


def uses_global():
    return Global()


def constant():
    return Constant()


def endless():
    return Endless()


def mixed():
    return Mixed()


def old_gym():
    return OldGym()


def vector(num_envs=2):
    return SyncVectorEnv([Corridor] * num_envs)


class Bandit(gymnasium.Env):
    """Two hundred pulls; the first action costs one, the second earns two. A level adds noise."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self):
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Box(0, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level, self.steps = float(self.np_random.random()), 0
        return np.array([self.level], dtype=np.float32), {}

    def step(self, action):
        self.steps += 1
        reward = (-1.0, 2.0, 0.0, 0.0)[int(action)]
        return np.array([self.level], dtype=np.float32), reward, False, self.steps >= 200, {}


class Elsewhere(Corridor):
    """Takes its level from `options` or from its constructor, never from the seed; actions are a pair of numbers."""

    def __init__(self, size=3, render_mode=None):
        super().__init__(slip=0.0, render_mode=render_mode)
        self.size = size
        self.action_space = spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2, start=1)))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=0)
        self.length = 3 + (options or {}).get("level", self.size) % 7
        return self._observation(), {}

    def step(self, action):
        move, count = action
        assert isinstance(action, tuple)
        assert count in (1, 2)
        observation, _, *ends, _ = super().step(move)
        return observation, 0.0, *ends, {"points": 0.5 * count}
