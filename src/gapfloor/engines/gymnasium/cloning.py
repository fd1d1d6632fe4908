"""Keeping the state of a Gymnasium environment: by copying the object, or by playing again from the seed.

A copy (by pickling and loading again) is not trusted: an environment that rebuilds itself when it is copied (EzPickle
does) loses its state. So each method is tried once, and the first that continues as the original does is used.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gapfloor.engines.gymnasium.actions import LegalChoice
from gapfloor.engines.gymnasium.spaces import Layout, row_bytes


class CloningMethod(Protocol):
    """One way of keeping a state."""

    name: str

    def keep(self, env: Any, level_seed: int, actions: Sequence[Any]) -> Any:
        """The state of `env`, which is on this level after these actions."""
        ...

    def bring_back(self, content: Any, env: Any) -> Any:
        """An environment in the kept state; `env` may be used up for it."""
        ...


class Pickled:
    """The object as bytes, which never leave this process."""

    name = "copying (pickle)"

    def keep(self, env: Any, level_seed: int, actions: Sequence[Any]) -> Any:
        return pickle.dumps(env, protocol=pickle.HIGHEST_PROTOCOL)

    def bring_back(self, content: Any, env: Any) -> Any:
        return pickle.loads(content)


#: Puts an environment (None: a new one) at the start of a level: the environment, its observation and info.
Begin = Callable[[Any, int], tuple[Any, Any, Any]]


class Replayed:
    """The level and the actions so far: works wherever an episode is a function of the two, at the price of play."""

    name = "replay from the seed"

    def __init__(self, begin: Begin) -> None:
        self._begin = begin

    def keep(self, env: Any, level_seed: int, actions: Sequence[Any]) -> Any:
        return level_seed, tuple(actions)

    def bring_back(self, content: Any, env: Any) -> Any:
        level_seed, actions = content
        env, _, _ = self._begin(env, level_seed)
        for action in actions:
            env.step(action)
        return env


def find_cloning_method(
    begin: Begin, *, layout: Layout, choice: LegalChoice, methods: Sequence[CloningMethod] = ()
) -> CloningMethod | None:
    """The first method that keeps a state whole, or None where none does."""
    for method in methods or (Pickled(), Replayed(begin)):
        # Whatever an environment's own code raises while it is copied, this method does not work for it.
        with contextlib.suppress(Exception):
            if all(_continues(method, begin, layout, choice, *case) for case in ((0, 3), (1, 14))):
                return method
    return None


def _continues(
    method: CloningMethod, begin: Begin, layout: Layout, choice: LegalChoice, level: int, steps: int
) -> bool:
    """Whether clones play on as the original does, and neither disturbs the other."""
    rng = np.random.default_rng(level)
    before, after = (rng.random((n, max(1, choice.form.space.width))) for n in (steps, 24))
    env, _, info = begin(None, level)
    played: list[Any] = []
    for numbers in before:
        played.append(choice.action(env, info, numbers))
        _, _, terminated, truncated, info = env.step(played[-1])
        if terminated or truncated:
            env, _, info = begin(env, level)
            played = []
    kept = method.keep(env, level, played)

    def continue_with(clone: Any) -> list[tuple[Any, ...]]:
        return _outcomes(clone, info, after, layout, choice)

    first = continue_with(method.bring_back(kept, None))
    original = continue_with(env)
    return first == original == continue_with(method.bring_back(kept, None))


def _outcomes(env: Any, info: Any, after: Any, layout: Layout, choice: LegalChoice) -> list[tuple[Any, ...]]:
    rows = layout.empty(1)
    seen = []
    for numbers in after:
        observation, reward, terminated, truncated, info = env.step(choice.action(env, info, numbers))
        layout.write(rows, 0, observation)
        seen.append((row_bytes(rows, 0), float(reward), bool(terminated), bool(truncated)))
        if terminated or truncated:
            break
    return seen
