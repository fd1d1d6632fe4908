"""Crafter as a Gymnasium environment whose seed is a level.

Crafter has the interface of the old gym: it takes its seed when it is made and counts its own episodes. It also keeps
the creatures of a region in a set whose order follows memory addresses, so the same seed and the same actions give
other episodes each time (`gapfloor doctor examples.crafter_env:make --option ordered=false` shows this). So the
adapter does two things: `reset(seed=)` becomes the world's seed, and the sets keep the order in which they were filled.

    gapfloor doctor examples.crafter_env:make
    gapfloor floor examples.crafter_env:make --episodes 32
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import crafter
import gymnasium
import numpy as np


class OrderedSet(dict[Any, None]):
    """As much of a set as Crafter uses, in the order in which it was filled."""

    def add(self, item: Any) -> None:
        self[item] = None

    def remove(self, item: Any) -> None:
        del self[item]


class CrafterLevels(gymnasium.Env[Any, Any]):
    """Crafter, with `reset(seed=)` as the world's seed."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (Gymnasium's way)

    def __init__(self, length: int = 10000, ordered: bool = True) -> None:
        self._ordered = ordered
        self._env = crafter.Env(length=length)
        self.action_names = list(self._env.action_names)
        self.action_space = gymnasium.spaces.Discrete(len(self.action_names))
        self.observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            # A world is a function of Crafter's own seed and of how many worlds came before it.
            self._env._seed, self._env._episode = seed, 0
        observation = self._env.reset()
        if self._ordered:
            self._keep_order()
        return observation, {}

    def _keep_order(self) -> None:
        world = self._env._world
        chunks: defaultdict[Any, OrderedSet] = defaultdict(OrderedSet)
        for key in world._chunks:
            chunks[key] = OrderedSet()
        for creature in world.objects:
            chunks[world.chunk_key(creature.pos)].add(creature)
        world._chunks = chunks

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, is_over, info = self._env.step(int(action))
        is_dead = info["discount"] == 0
        return observation, float(reward), bool(is_dead), bool(is_over and not is_dead), {}


def make(length: int = 10000, ordered: bool = True) -> CrafterLevels:
    """A world of at most `length` steps; `ordered=False` is Crafter as it is."""
    return CrafterLevels(length=length, ordered=ordered)
