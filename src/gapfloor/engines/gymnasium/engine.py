"""Any Gymnasium environment whose `reset(seed=)` is a level, as an engine.

Each slot is an environment of its own, which we reset ourselves: `reset(seed=level)` is the level, and an
episode ends where the environment says terminated or truncated. A fresh engine plays through its draw of levels, as
ProcGen does.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions
from gapfloor.engines.catalogue import GYMNASIUM
from gapfloor.engines.engine import Engine, EngineSpec, Option
from gapfloor.engines.environment_batch import EnvironmentBatch, as_frame
from gapfloor.engines.gymnasium.actions import LegalChoice, read_mask
from gapfloor.engines.gymnasium.cloning import CloningMethod, find_cloning_method
from gapfloor.engines.gymnasium.description import describe
from gapfloor.engines.gymnasium.factory import Recipe, begin_level
from gapfloor.engines.gymnasium.spaces import copy_row, put_row
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet

#: The mode that records name, since Gymnasium has none.
MODE = "default"

#: More steps than any episode has.
NO_LIMIT = np.iinfo(np.int64).max

#: An episode of random play without a declared limit must end within so many steps. It is looked for no longer than so
#: many seconds of CPU, which do not depend on what else the machine does, and four times as many of the clock.
MOST_STEPS_TO_END, MOST_SECONDS_TO_END = 50_000, 30.0


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of a Gymnasium environment; making it once is part of the check."""
    if mode not in (None, MODE):
        raise UsageError(
            f"{game} has no modes: --mode {mode} is for ProcGen. Give arguments of an environment as options, e.g. "
            "--option size=8."
        )
    recipe = Recipe(game, tuple(sorted((options or {}).items())))
    return EngineSpec(GYMNASIUM.name, describe(recipe).version, game, MODE, recipe.options)


@functools.lru_cache(maxsize=64)
def check_ends(spec: EngineSpec) -> None:
    """Refuse an environment without a step limit in which one episode of random play does not end.

    An episode that is too slow to tell is left to the limit of play itself.
    """
    from gapfloor.engines.level_play import random_actions

    if describe(recipe_of(spec)).has_limit:
        return
    engine = engine_from_spec(spec, slots=1, levels=LevelSet(0, 1))
    rng, cpu, clock = np.random.default_rng(0), time.process_time(), time.monotonic()
    try:
        engine.begin(0, 0)
        for _ in range(MOST_STEPS_TO_END):
            if engine.step(random_actions(engine, rng))[2][0]:
                return
            if max(time.process_time() - cpu, (time.monotonic() - clock) / 4) > MOST_SECONDS_TO_END:
                return
    finally:
        engine.close()
    raise UsageError(
        f"{spec.game} did not end within {MOST_STEPS_TO_END:,} steps of random play and has no step limit: give one "
        "with --option max_episode_steps=N."
    )


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> Engine:
    """A running engine of `spec`; refuses a specification made with other versions."""
    recipe = recipe_of(spec)
    found = describe(recipe)
    GYMNASIUM.check_version(spec.version, found.version)
    return GymnasiumEngine(recipe, slots=slots, levels=levels, draw=draw)


def recipe_of(spec: EngineSpec) -> Recipe:
    """The environment that a specification names."""
    return Recipe(spec.game, tuple(sorted(spec.options)))


@dataclass(frozen=True)
class SlotState:
    """A slot's state: the environment as its cloning method keeps it, and what the slot showed."""

    level_seed: int
    content: Any
    observation: Any
    actions: tuple[Any, ...]
    is_first: bool
    plays: bool
    legal: Any = None
    """The slot's mask, if there are masks."""
    succeeded: bool = False
    """Whether success was reported before, where it is the score."""


class GymnasiumEngine(EnvironmentBatch):
    """A batch of single environments; see `gapfloor.engines.engine.Engine` for what each method promises."""

    def __init__(self, recipe: Recipe, *, slots: int, levels: LevelSet, draw: int = 0) -> None:
        super().__init__(recipe, describe(recipe), slots=slots, levels=levels, draw=draw)
        self._envs: list[Any] = [None] * slots
        self._steps: list[Any] = [None] * slots
        """How each slot's environment is stepped."""
        self._limits = np.full(slots, NO_LIMIT)
        """Steps after which each slot's episode is cut."""
        self._actions: list[list[Any]] = [[] for _ in range(slots)]
        self._begin = functools.partial(begin_level, recipe, render_mode=self.description.render_mode)

    @property
    def can_clone(self) -> bool:
        return self.cloning_method is not None

    @property
    def cloning_method(self) -> CloningMethod | None:
        """How states are saved; tried when it is first needed."""
        return cloning_method_of(self.recipe)

    def _advance(self, slots: list[int], actions: Actions) -> tuple[Sequence[Any], Sequence[int]]:
        rewards, ended = [], []
        chosen = self.description.form.each(actions)
        is_late = (self._lengths >= self._limits).tolist()
        for slot in slots:
            action = chosen[slot]
            try:
                observation, reward, terminated, truncated, info = self._steps[slot](action)
                has_ended = bool(terminated or truncated or is_late[slot])
            except Exception as error:
                raise self._fail(f"step({action}) on level {self._level[slot]}", error) from error
            self._actions[slot].append(action)
            rewards.append(self._score(slot, info) if self._scores else reward)
            if has_ended:
                ended.append(slot)
            else:
                self._see(slot, observation, info)
        return rewards, ended

    def save(self, slot: int) -> SlotState:
        self._start()
        plays = bool(self._plays[slot])
        level, actions = int(self._level[slot]), self._actions[slot]
        content = self._known_cloning_method().keep(self._envs[slot], level, actions) if plays else None
        observation = copy_row(self._rows, slot)
        legal = None if self._masks is None else self._masks[slot].copy()
        succeeded = bool(self._succeeded[slot])
        return SlotState(
            level, content, observation, tuple(actions), bool(self._firsts[slot]), plays, legal, succeeded
        )

    def load(self, slot: int, state: SlotState) -> None:
        self._follows_draw = False
        if state.plays:
            self._use(slot, self._known_cloning_method().bring_back(state.content, self._envs[slot]))
        put_row(self._rows, slot, state.observation)
        if self._masks is not None:
            self._masks[slot] = state.legal
        self._plays[slot], self._firsts[slot] = state.plays, state.is_first
        self._level[slot], self._rewards[slot] = state.level_seed, 0
        self._succeeded[slot] = state.succeeded
        self._actions[slot] = list(state.actions)
        self._lengths[slot] = len(state.actions)

    def frame(self, slot: int) -> npt.NDArray[np.uint8] | None:
        self._start()
        env = self._envs[slot]
        drawn = None
        if env is not None and getattr(env, "render_mode", None) == "rgb_array":
            with contextlib.suppress(Exception):  # a missing drawing library must not end a replay
                drawn = env.render()
        if drawn is None:
            drawn = copy_row(self._rows, slot)
        return as_frame(drawn)

    def close(self) -> None:
        for env in self._envs:
            if env is not None:
                with contextlib.suppress(Exception):
                    env.close()
        self._envs = [None] * self.n_slots

    def _known_cloning_method(self) -> CloningMethod:
        method = self.cloning_method
        if method is None:
            raise UsageError(
                f"States of {self.recipe.game} can be saved neither by copying nor by replay from the seed, so "
                "calibration is not possible: gapfloor doctor shows the details."
            )
        return method

    def _reset(self, slot: int, level_seed: int) -> tuple[Any, Any]:
        env, observation, info = self._begin(self._envs[slot], level_seed)
        self._use(slot, env)
        self._actions[slot] = []
        return observation, info

    def _use(self, slot: int, env: Any) -> None:
        """Make this a slot's environment; wrappers that only count or check steps are left out of its steps."""
        if env is self._envs[slot]:
            return
        self._envs[slot], self._limits[slot] = env, NO_LIMIT
        from gymnasium.wrappers import OrderEnforcing, TimeLimit

        while type(env) in (OrderEnforcing, TimeLimit):
            if type(env) is TimeLimit:
                self._limits[slot] = min(self._limits[slot], env._max_episode_steps)
            env = env.env
        self._steps[slot] = env.step

    def _stated_mask(self, slot: int, info: Any) -> Any:
        return read_mask(self._envs[slot], info, self.description.masks)


@functools.lru_cache(maxsize=64)
def cloning_method_of(recipe: Recipe) -> CloningMethod | None:
    """How states of an environment are saved; tried once per process."""
    found = describe(recipe)
    return find_cloning_method(
        functools.partial(begin_level, recipe, render_mode=found.render_mode),
        layout=found.layout,
        choice=LegalChoice(found.form, found.masks, recipe.game),
    )
