"""Keeping the state of a Gymnasium environment: by copying the object, or by playing again from the seed.

Pickling and loading again is also a deep copy, and on most environments several times faster than `copy.deepcopy`.
Neither is trusted: an environment that rebuilds itself when it is copied (EzPickle does) loses its state. So each
method is tried once, and the first that continues as the original does is used.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gapfloor.engines.gymnasium.spaces import Layout, row_bytes


class CloningMethod(Protocol):
    """One way of keeping a state."""

    name: str

    def keep(self, env: Any, level_seed: int, actions: Sequence[int]) -> Any:
        """The state of `env`, which is on this level after these actions."""
        ...

    def bring_back(self, content: Any, env: Any) -> Any:
        """An environment in the kept state; `env` may be used up for it."""
        ...


class Pickled:
    """The object as bytes, which never leave this process."""

    name = "copying (pickle)"

    def keep(self, env: Any, level_seed: int, actions: Sequence[int]) -> Any:
        return pickle.dumps(env, protocol=pickle.HIGHEST_PROTOCOL)

    def bring_back(self, content: Any, env: Any) -> Any:
        return pickle.loads(content)


class DeepCopied:
    """The object itself, copied when it is kept and again each time it is brought back."""

    name = "copying (deepcopy)"

    def keep(self, env: Any, level_seed: int, actions: Sequence[int]) -> Any:
        return copy.deepcopy(env)

    def bring_back(self, content: Any, env: Any) -> Any:
        return copy.deepcopy(content)


class Replayed:
    """The level and the actions so far: works wherever an episode is a function of the two, at the price of play."""

    name = "replay from the seed"

    def keep(self, env: Any, level_seed: int, actions: Sequence[int]) -> Any:
        return level_seed, tuple(actions)

    def bring_back(self, content: Any, env: Any) -> Any:
        level_seed, actions = content
        env.reset(seed=level_seed)
        for action in actions:
            env.step(action)
        return env


CLONING_METHODS: tuple[CloningMethod, ...] = (Pickled(), DeepCopied(), Replayed())


def find_cloning_method(
    make: Callable[[], Any],
    *,
    layout: Layout,
    n_actions: int,
    first_action: int = 0,
    methods: Sequence[CloningMethod] = CLONING_METHODS,
) -> CloningMethod | None:
    """The first method that keeps a state whole, or None where none does."""
    for method in methods:
        # Whatever an environment's own code raises while it is copied, this method does not work for it.
        with contextlib.suppress(Exception):
            if all(
                _continues(method, make, layout, n_actions, first_action, level, steps)
                for level, steps in ((0, 3), (1, 14))
            ):
                return method
    return None


def _continues(
    method: CloningMethod,
    make: Callable[[], Any],
    layout: Layout,
    n_actions: int,
    first_action: int,
    level: int,
    steps: int,
) -> bool:
    """Whether clones play on as the original does, and neither disturbs the other."""
    rng = np.random.default_rng(level)
    before = (first_action + rng.integers(0, n_actions, steps)).tolist()
    after = (first_action + rng.integers(0, n_actions, 24)).tolist()
    env = make()
    env.reset(seed=level)
    played: list[int] = []
    for action in before:
        _, _, terminated, truncated, _ = env.step(action)
        played.append(action)
        if terminated or truncated:
            env.reset(seed=level)
            played = []
    kept = method.keep(env, level, played)
    first = _outcomes(method.bring_back(kept, make()), after, layout)
    original = _outcomes(env, after, layout)
    second = _outcomes(method.bring_back(kept, make()), after, layout)
    return first == original == second


def _outcomes(env: Any, actions: Sequence[int], layout: Layout) -> list[tuple[Any, ...]]:
    rows = layout.empty(1)
    seen = []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        layout.write(rows, 0, observation)
        seen.append((row_bytes(rows, 0), float(reward), bool(terminated), bool(truncated)))
        if terminated or truncated:
            break
    return seen
