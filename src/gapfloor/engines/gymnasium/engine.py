"""Gymnasium environments as an engine: a batch of environments that gapfloor resets itself.

Each slot is an environment of its own: `reset(seed=level)` is the level, and an episode ends where the environment says
terminated or truncated. A fresh batch plays through its draw of levels, as ProcGen does in C++. After the first call of
`begin` or `load` the caller decides what is played, and a slot whose episode has ended waits: it shows nothing and
earns nothing until it begins again. EnvPool's environments are played in the same way (`gapfloor.engines.envpool`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions, Discrete, Masks
from gapfloor.engines.engine import (
    ENGINES,
    GYMNASIUM,
    Engine,
    EngineSpec,
    Observations,
    Option,
    Step,
    map_arrays,
)
from gapfloor.engines.gymnasium.description import SUCCESS, describe, score_name
from gapfloor.engines.gymnasium.factory import begin_level
from gapfloor.engines.gymnasium.spaces import mask_method
from gapfloor.errors import GapfloorError, UsageError
from gapfloor.levels.schedule import LevelSet, check_draw, draw_levels

#: The mode that records name, since Gymnasium has none.
MODE = "default"

#: An episode of random play without a declared limit must end within so many steps. It is looked for no longer than so
#: many seconds of CPU, which do not depend on what else the machine does, and four times as many of the clock.
MOST_STEPS_TO_END, MOST_SECONDS_TO_END = 50_000, 30.0

#: An episode that is longer than this is taken not to end, so that no command runs for ever: with a declared limit,
#: and without one (Atari's own is 108,000 frames).
MOST_STEPS, MOST_STEPS_UNDECLARED = 1_000_000, 110_000

#: More steps than any episode has.
NO_LIMIT = np.iinfo(np.int64).max

#: Longer sides of a frame are averaged down to at most this many pixels.
MOST_PIXELS = 200


def make_spec(
    game: str,
    *,
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    engine: str = GYMNASIUM.name,
) -> EngineSpec:
    """The checked recipe of an environment, which has no modes; making it once is part of the check."""
    if mode not in (None, MODE):
        raise UsageError(
            f"{game} has no modes: --mode {mode} is for ProcGen. Give arguments of an environment as options, "
            "e.g. --option size=8."
        )
    spec = EngineSpec(engine, "", game, MODE, tuple(sorted((options or {}).items())))
    return replace(spec, version=describe(spec).version)


@functools.lru_cache(maxsize=64)
def check_ends(spec: EngineSpec) -> None:
    """Refuse an environment without a step limit in which one episode of random play does not end.

    An episode that is too slow to tell is left to the limit of play itself.
    """
    from gapfloor.engines.level_play import random_actions

    if describe(spec).has_limit:
        return
    rng, cpu, clock = np.random.default_rng(0), time.process_time(), time.monotonic()
    with contextlib.closing(engine_from_spec(spec, slots=1, levels=LevelSet(0, 1))) as engine:
        engine.begin(0, 0)
        for _ in range(MOST_STEPS_TO_END):
            if engine.step(random_actions(engine, rng))[2][0]:
                return
            if max(time.process_time() - cpu, (time.monotonic() - clock) / 4) > MOST_SECONDS_TO_END:
                return
    raise UsageError(
        f"{spec.game} did not end within {MOST_STEPS_TO_END:,} steps of random play and has no step limit: give one "
        "with --option max_episode_steps=N."
    )


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> Engine:
    """A running engine of `spec`; refuses a specification made with other versions."""
    ENGINES[spec.engine].check_version(spec.version, describe(spec).version)
    return GymnasiumEngine(spec, slots=slots, levels=levels, draw=draw)


@dataclass(frozen=True)
class SlotState:
    """A slot's state: the level and the actions since its start, which are played again where it is loaded."""

    level_seed: int
    actions: tuple[Any, ...]
    plays: bool
    succeeded: bool
    """Whether success was reported before, where it is the score."""


class GymnasiumEngine:
    """A batch of single environments; see `gapfloor.engines.engine.Engine` for what each method promises."""

    def __init__(self, spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> None:
        check_draw(draw)
        if slots < 1:
            raise UsageError(f"An engine needs at least 1 slot, not {slots}.")
        self.spec, self.n_slots = spec, slots
        self.description = description = describe(spec)
        self.action_space, self.noop = description.form.space, description.noop
        self.n_actions = self.action_space.n if isinstance(self.action_space, Discrete) else 0
        self.action_names = description.action_names
        self.observation_shape = description.layout.shape
        self._draw = functools.partial(draw_levels, levels, draw=draw, slots=slots)
        self._drawn = self._draw(episodes=16)
        self.level_seeds = self._drawn[:, 0].copy()
        self._episode = np.zeros(slots, dtype=np.int64)
        self._follows_draw, self._has_started = True, False
        self._envs: list[Any] = [None] * slots
        self._steps: list[Any] = [None] * slots
        """How each slot's environment is stepped."""
        self._limits = np.full(slots, NO_LIMIT)
        """Steps after which each slot's episode is cut."""
        self._actions: list[list[Any]] = [[] for _ in range(slots)]
        self._rows: Observations = description.layout.empty(slots)
        #: The shape of observations that need no conversion; None where they do.
        self._plain_shape = description.layout.shape or None
        self._rewards, self._firsts = np.zeros(slots), np.ones(slots, dtype=bool)
        self._plays, self._succeeded = np.zeros(slots, dtype=bool), np.zeros(slots, dtype=bool)
        self._lengths = np.zeros(slots, dtype=np.int64)
        self._scores = spec.option("score") is not None
        self._most_steps = MOST_STEPS if description.has_limit else MOST_STEPS_UNDECLARED
        self.masks: Masks | None = None
        if description.masks:
            if not self.n_actions:
                raise UsageError(
                    f"Real-valued actions have no masks, but masks=true is given for {self.action_space}: leave it out."
                )
            self.masks = np.ones((slots, self.n_actions), dtype=bool)

    @functools.cached_property
    def can_clone(self) -> bool:
        return _replays(self.spec)

    def observe(self) -> Step:
        self._start()
        return self._rows, self._rewards, self._firsts

    def begin(self, slot: int, level_seed: int) -> None:
        self._follows_draw = False
        self._play(slot, level_seed)
        self._rewards[slot] = 0

    def step(self, actions: Actions) -> Step:
        self._start()
        playing = np.flatnonzero(self._plays)
        self._lengths[playing] += 1
        if self._lengths.max() > self._most_steps:
            level = self.level_seeds[int(self._lengths.argmax())]
            raise UsageError(
                f"An episode of {self.spec.game} (level {level}) has not ended after {self._most_steps:,} steps: end "
                "it with --option max_episode_steps=N."
            )
        self._firsts[playing] = False
        chosen = self.description.form.each(actions)
        is_late = (self._lengths >= self._limits).tolist()
        rewards, ended = [], []
        for slot in playing.tolist():
            action = chosen[slot]
            try:
                observation, reward, terminated, truncated, info = self._steps[slot](action)
                has_ended = bool(terminated or truncated or is_late[slot])
            except Exception as error:
                raise self._fail(f"step({action}) on level {self.level_seeds[slot]}", error) from error
            self._actions[slot].append(action)
            rewards.append(self._score(slot, info) if self._scores else reward)
            if has_ended:
                ended.append(slot)
            else:
                self._see(slot, observation, info)
        self._earn(playing, rewards)
        for slot in ended:
            if not self._follows_draw:
                self._wait(slot)
                continue
            self._episode[slot] += 1
            if self._episode[slot] >= self._drawn.shape[1]:
                self._drawn = self._draw(episodes=2 * self._drawn.shape[1])
            self._play(slot, int(self._drawn[slot, self._episode[slot]]))
        return self._rows, self._rewards, self._firsts

    def save(self, slot: int) -> SlotState:
        self._start()
        self._check_cloning()
        actions, plays = tuple(self._actions[slot]), bool(self._plays[slot])
        return SlotState(int(self.level_seeds[slot]), actions, plays, bool(self._succeeded[slot]))

    def load(self, slot: int, state: SlotState) -> None:
        self._follows_draw = False
        self._check_cloning()
        if state.plays:
            self._play(slot, state.level_seed)
            for action in state.actions:
                observation, _, _, _, info = self._steps[slot](action)
            if state.actions:
                self._firsts[slot] = False
                self._see(slot, observation, info)
        else:
            self._wait(slot)
        self.level_seeds[slot], self._rewards[slot], self._succeeded[slot] = (
            state.level_seed,
            0,
            state.succeeded,
        )
        self._actions[slot], self._lengths[slot] = list(state.actions), len(state.actions)

    def frame(self, slot: int) -> npt.NDArray[np.uint8] | None:
        self._start()
        env = self._envs[slot]
        drawn = None
        if env is not None and getattr(env, "render_mode", None) == "rgb_array":
            with contextlib.suppress(Exception):  # a missing drawing library must not end a replay
                drawn = env.render()
        return _as_frame(map_arrays(self._rows, lambda array: array[slot]) if drawn is None else drawn)

    def close(self) -> None:
        for env in self._envs:
            if env is not None:
                with contextlib.suppress(Exception):
                    env.close()
        self._envs = [None] * self.n_slots

    def _start(self) -> None:
        """The first levels of the draw, unless somebody has begun others."""
        if self._follows_draw and not self._has_started:
            for slot in range(self.n_slots):
                self._play(slot, int(self.level_seeds[slot]))
        self._has_started = True

    def _play(self, slot: int, level_seed: int) -> None:
        """Put a slot at the start of a level."""
        env, observation, info = begin_level(
            self.spec, self._envs[slot], level_seed, render_mode=self.description.render_mode
        )
        self._use(slot, env)
        self._actions[slot] = []
        self.level_seeds[slot], self._lengths[slot] = level_seed, 0
        self._firsts[slot] = self._plays[slot] = True
        self._succeeded[slot] = False
        self._see(slot, observation, info)

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

    def _wait(self, slot: int) -> None:
        self._firsts[slot], self._plays[slot] = True, False
        if self.masks is not None:
            self.masks[slot] = True
        for array in self._rows.values() if isinstance(self._rows, Mapping) else (self._rows,):
            array[slot] = np.zeros((), dtype=array.dtype)

    def _see(self, slot: int, observation: Any, info: Any) -> None:
        """Take in a slot's observation and its legal actions."""
        if type(observation) is np.ndarray and observation.shape == self._plain_shape:
            self._rows[slot] = observation
        else:
            layout = self.description.layout
            try:
                layout.write(self._rows, slot, observation)
            except (TypeError, ValueError, LookupError) as error:
                words = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
                raise UsageError(
                    f"{self.spec.game} returned an observation that is not in its observation space "
                    f"({layout.describe()}): {words}. Correct the observation or the space."
                ) from error
        if self.masks is not None:
            try:
                is_method = self.description.masks == "method"
                mask = mask_method(self._envs[slot])() if is_method else info["action_mask"]
            except Exception as error:
                raise self._fail("stating which actions are legal", error) from error
            where = f"{self.spec.game} (level {self.level_seeds[slot]})"
            self.masks[slot] = self.description.form.legal_row(mask, where=where)

    def _earn(self, playing: npt.NDArray[np.integer[Any]], rewards: Sequence[Any]) -> None:
        """Write the rewards of a step, all at once where they are plain numbers."""
        self._rewards[:] = 0
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            numbers = np.array(rewards, dtype=np.float64)
            if numbers.shape == playing.shape and np.isfinite(numbers).all():
                self._rewards[playing] = numbers
                return
        for slot, reward in zip(playing, rewards, strict=True):
            self._rewards[slot] = self._as_number(reward)

    def _as_number(self, reward: Any) -> float:
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            number = float(reward.item() if hasattr(reward, "item") else reward)
            if math.isfinite(number):
                return number
        raise UsageError(
            f"{self.spec.game} returned the reward {' '.join(repr(reward).split())[:100]}, which is not one finite "
            "number: give it a wrapper that returns one (--option wrapper=module:Class)."
        )

    def _score(self, slot: int, info: Any) -> Any:
        """The score of a step where the user asked for one: of success, 1 when it is reported for the first time.

        Robot tasks give a shaped reward and say in `info` whether the task is solved. Papers report the share of
        episodes in which it was solved at some step. Any other score is added up as rewards are.
        """
        reported = info[score_name(self.spec, info or ())]
        if self.spec.option("score") != SUCCESS:
            return reported
        is_first = bool(reported) and not self._succeeded[slot]
        self._succeeded[slot] |= bool(reported)
        return float(is_first)

    def _check_cloning(self) -> None:
        if not self.can_clone:
            raise UsageError(
                f"States of {self.spec.game} cannot be saved, because the same actions on the same level do not give "
                "the same state again, so calibration is not possible: gapfloor doctor shows the details."
            )

    def _fail(self, what: str, error: Exception) -> GapfloorError:
        return UsageError(f"{self.spec.game} failed in {what}: {type(error).__name__}: {error}")


@functools.lru_cache(maxsize=64)
def _replays(spec: EngineSpec) -> bool:
    """Whether the same actions on the same level give the same state again, by which states are saved; tried once."""
    from gapfloor.engines.level_play import level_of_unlike_clones

    if ENGINES[spec.engine].never_clones:
        return False
    # Whatever an environment's own code raises: its states cannot be saved.
    with (
        contextlib.suppress(Exception),
        contextlib.closing(GymnasiumEngine(spec, slots=3, levels=LevelSet(0, 2))) as engine,
    ):
        engine.__dict__["can_clone"] = True
        return level_of_unlike_clones(engine, (0, 1)) is None
    return False


def _as_frame(drawn: Any) -> npt.NDArray[np.uint8] | None:
    """A picture of limited size, or None if the array is not a picture."""
    if isinstance(drawn, (list, tuple)) and drawn:
        drawn = drawn[-1]
    picture = np.asarray(drawn)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or min(picture.shape[:2]) < 16:
        return None
    factor = -(-max(picture.shape[:2]) // MOST_PIXELS)
    if factor > 1:
        height, width = (side // factor * factor for side in picture.shape[:2])
        blocks = picture[:height, :width].reshape(height // factor, factor, width // factor, factor, 3)
        picture = blocks.mean(axis=(1, 3)).round().astype(np.uint8)
    return np.ascontiguousarray(picture)
