"""Environments with one action space each, which insist on receiving exactly what their space contains."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TransformAction

SPACES: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(4, start=2),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 4], start=[0, 1, -1]),
    "multi_binary": spaces.MultiBinary([2, 2]),
    "four_bits": spaces.MultiBinary(4),
    "many": spaces.MultiDiscrete([40, 50]),
    "box": spaces.Box(np.array([[-1.0, 0.0]]), np.array([[2.0, 0.5]]), dtype=np.float32),
    "whole_box": spaces.Box(-1, 3, (2,), np.int32),
    "unbounded": spaces.Box(-np.inf, np.inf, (3,), np.float32),
    "dict": spaces.Dict({"move": spaces.Discrete(2)}),
}


class Insisting(gymnasium.Env[Any, Any]):
    """Ten steps; the reward grows with every number of the action except the last one of a row."""

    def __init__(self, space: spaces.Space[Any], *, has_masks: bool = False) -> None:
        self.action_space, self.has_masks = space, has_masks
        self.observation_space = spaces.Box(-1, 1, (3,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 10
        return self._observe()

    def _observe(self) -> Any:
        self.seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self.seen, {"action_mask": self._mask()} if self.has_masks else {}

    def _mask(self) -> Any:
        legal = np.ones(_mask_size(self.action_space), dtype=np.int8)
        legal[0 if self.left % 2 else -1] = 0
        return legal

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        numbers = np.ravel(np.asarray(action, dtype=np.float64))
        if self.has_masks:
            assert self._is_legal(numbers), f"{action!r} is not legal"
        self.left -= 1
        reward = float(numbers[: max(1, len(numbers) - 1)].sum() * (1 + self.seen[0]))
        observation, info = self._observe()
        return observation, reward, False, self.left == 0, info

    def _is_legal(self, numbers: Any) -> bool:
        mask, at = self._mask(), 0
        for number, size, start in zip(numbers, *_sizes(self.action_space), strict=True):
            if not mask[at + int(number) - start]:
                return False
            at += size
        return True


class WithMethod(Insisting):
    """States its masks by a method too, as sb3-contrib expects."""

    def action_masks(self) -> Any:
        return self._mask()


def _sizes(space: Any) -> tuple[list[int], list[int]]:
    if isinstance(space, spaces.Discrete):
        return [int(space.n)], [int(space.start)]
    return [int(n) for n in space.nvec], [int(n) for n in space.start]


def _mask_size(space: Any) -> int:
    return sum(_sizes(space)[0])


def discrete() -> Any:
    return Insisting(SPACES["discrete"])


def multi_discrete() -> Any:
    return Insisting(SPACES["multi_discrete"])


def multi_binary() -> Any:
    return Insisting(SPACES["multi_binary"])


def four_bits() -> Any:
    return Insisting(SPACES["four_bits"])


def many() -> Any:
    return Insisting(SPACES["many"])


def box() -> Any:
    return Insisting(SPACES["box"])


def whole_box() -> Any:
    return Insisting(SPACES["whole_box"])


def unbounded() -> Any:
    return Insisting(SPACES["unbounded"])


def bounded(env: Any) -> Any:
    return TransformAction(env, lambda action: action, spaces.Box(-2, 0.5, (3,), np.float32))


def of_dict() -> Any:
    return Insisting(SPACES["dict"])


def masked() -> Any:
    return WithMethod(SPACES["discrete"], has_masks=True)


def masked_info() -> Any:
    return Insisting(SPACES["discrete"], has_masks=True)


def masked_multi() -> Any:
    return WithMethod(SPACES["multi_discrete"], has_masks=True)


class Ignoring(Insisting):
    """Ignores its seed."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=None)


def ignoring() -> Any:
    return Ignoring(SPACES["box"])
