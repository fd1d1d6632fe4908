"""Slots whose environments gapfloor resets itself: Gymnasium's, and those of EnvPool.

A fresh batch plays through its draw of levels, as ProcGen does in C++. After the first call of `begin` or `load` the
caller decides what is played, and a slot whose episode has ended waits: it shows nothing and earns nothing until it
begins again. An engine adds how one slot is reset and how all of them advance.
"""

from __future__ import annotations

import contextlib
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions, ActionSpace, Discrete, Masks, MultiDiscrete
from gapfloor.engines.engine import Observations, State, Step
from gapfloor.engines.gymnasium.description import SUCCESS, Description, score_name
from gapfloor.engines.gymnasium.factory import Recipe
from gapfloor.engines.gymnasium.spaces import put_row
from gapfloor.errors import GapfloorError, UsageError
from gapfloor.levels import LevelSet, draw_levels
from gapfloor.levels.draws import check_draw

#: An episode that is longer than this is taken not to end, so that no command runs for ever: with a declared limit,
#: and without one (Atari's own is 108,000 frames).
MOST_STEPS, MOST_STEPS_UNDECLARED = 1_000_000, 110_000

#: Longer sides of a frame are averaged down to at most this many pixels.
MOST_PIXELS = 200


class EnvironmentBatch(ABC):
    """The rows that callers see, which level each slot plays, and which comes next."""

    def __init__(
        self, recipe: Recipe, description: Description, *, slots: int, levels: LevelSet, draw: int
    ) -> None:
        check_draw(draw)
        if slots < 1:
            raise UsageError(f"An engine needs at least 1 slot, not {slots}.")
        self.recipe, self.description, self.n_slots = recipe, description, slots
        self.action_space, self.noop = description.form.space, description.noop
        self.n_actions = self.action_space.n if isinstance(self.action_space, Discrete) else 0
        self.action_names = description.action_names
        self.observation_shape = description.layout.shape
        self._draw = functools.partial(draw_levels, levels, draw=draw, slots=slots)
        self._drawn = self._draw(episodes=16)
        self._level = self._drawn[:, 0].copy()
        self._episode = np.zeros(slots, dtype=np.int64)
        self._follows_draw, self._has_started = True, False
        self._rows: Observations = description.layout.empty(slots)
        #: The shape of observations that need no conversion; None where they do.
        self._plain_shape = description.layout.shape or None
        self._rewards = np.zeros(slots)
        self._firsts = np.ones(slots, dtype=bool)
        self._plays = np.zeros(slots, dtype=bool)
        self._lengths = np.zeros(slots, dtype=np.int64)
        self._succeeded = np.zeros(slots, dtype=bool)
        self._scores = recipe.own("score") is not None
        self._most_steps = MOST_STEPS if description.has_limit else MOST_STEPS_UNDECLARED
        self._masks: Masks | None = None
        if description.masks:
            self._masks = np.ones((slots, _mask_width(self.action_space)), dtype=bool)

    @property
    def level_seeds(self) -> npt.NDArray[np.int64]:
        return self._level

    def begin(self, slot: int, level_seed: int) -> None:
        self._follows_draw = False
        self._play(slot, level_seed)
        self._rewards[slot] = 0

    @abstractmethod
    def _reset(self, slot: int, level_seed: int) -> tuple[Any, Any]:
        """Put a slot's environment at the start of a level; its first observation and info."""

    @abstractmethod
    def _advance(self, slots: list[int], actions: Actions) -> tuple[Sequence[Any], Sequence[int]]:
        """Step these slots, which play, and show what they see; their rewards, and the slots whose episode has ended.

        `actions` has a row for every slot.
        """

    def step(self, actions: Actions) -> Step:
        self._start()
        playing = np.flatnonzero(self._plays)
        self._count_steps(playing)
        self._firsts[playing] = False
        rewards, ended = self._advance(playing.tolist(), actions)
        self._earn(playing, rewards)
        for slot in ended:
            if self._follows_draw:
                self._play(slot, self._next_level(slot))
            else:
                self._wait(slot)
        return self._rows, self._rewards, self._firsts

    def _play(self, slot: int, level_seed: int) -> None:
        try:
            observation, info = self._reset(slot, level_seed)
        except GapfloorError:
            raise
        except Exception as error:
            raise self._fail(f"reset(seed={level_seed})", error) from error
        self._level[slot], self._lengths[slot] = level_seed, 0
        self._firsts[slot] = self._plays[slot] = True
        self._succeeded[slot] = False
        self._see(slot, observation, info)

    def _see(self, slot: int, observation: Any, info: Any) -> None:
        """Take in a slot's observation and its legal actions."""
        self._show(slot, observation)
        if self._masks is not None:
            self._read_mask(slot, info)

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

    @property
    def masks(self) -> Masks | None:
        return self._masks

    @property
    def can_clone(self) -> bool:
        return False

    def save(self, slot: int) -> State:
        raise UsageError(
            f"The state of one environment of {self.recipe.game} cannot be saved here, so there is no calibration "
            "with it: give Gymnasium's own ID, or a factory of single environments."
        )

    def load(self, slot: int, state: State) -> None:
        self.save(slot)

    def observe(self) -> Step:
        self._start()
        return self._rows, self._rewards, self._firsts

    def _wait(self, slot: int) -> None:
        self._firsts[slot], self._plays[slot] = True, False
        if self._masks is not None:
            self._masks[slot] = True
        put_row(self._rows, slot, None)

    def _count_steps(self, playing: npt.NDArray[np.integer[Any]]) -> None:
        """Count a step of these slots; an episode that does not end is refused."""
        self._lengths[playing] += 1
        if self._lengths.max() > self._most_steps:
            level = self._level[int(self._lengths.argmax())]
            raise UsageError(
                f"An episode of {self.recipe.game} (level {level}) has not ended after {self._most_steps:,} steps: end "
                "it with --option max_episode_steps=N."
            )

    def _show(self, slot: int, observation: Any) -> None:
        if type(observation) is np.ndarray and observation.shape == self._plain_shape:
            self._rows[slot] = observation
            return
        try:
            self.description.layout.write(self._rows, slot, observation)
        except (TypeError, ValueError, LookupError) as error:
            words = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise UsageError(
                f"{self.recipe.game} returned an observation that is not in its observation space "
                f"({self.description.layout.describe()}): {words}. Correct the observation or the space."
            ) from error

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
            f"{self.recipe.game} returned the reward {' '.join(repr(reward).split())[:100]}, which is not one finite "
            "number: give it a wrapper that returns one (--option wrapper=module:Class)."
        )

    def _score(self, slot: int, info: Any) -> Any:
        """The score of a step where the user asked for one: of success, 1 when it is reported for the first time.

        Robot tasks give a shaped reward and say in `info` whether the task is solved. Papers report the share of
        episodes in which it was solved at some step. Any other score is added up as rewards are.
        """
        reported = info[score_name(self.recipe, info or ())]
        if self.recipe.own("score") != SUCCESS:
            return reported
        is_first = bool(reported) and not self._succeeded[slot]
        self._succeeded[slot] |= bool(reported)
        return float(is_first)

    def _read_mask(self, slot: int, info: Any) -> None:
        """Write which actions are legal in a slot's state."""
        assert self._masks is not None
        try:
            mask = self._stated_mask(slot, info)
        except Exception as error:
            raise self._fail("stating which actions are legal", error) from error
        where = f"{self.recipe.game} (level {self._level[slot]})"
        self._masks[slot] = self.description.form.legal_row(mask, where=where)

    def _stated_mask(self, slot: int, info: Any) -> Any:
        """The environment's own mask of a slot's state; called only where the description names masks."""
        return info[self.description.masks]

    def _fail(self, what: str, error: Exception) -> GapfloorError:
        return UsageError(f"{self.recipe.game} failed in {what}: {type(error).__name__}: {error}")


def _mask_width(space: ActionSpace) -> int:
    """Columns of a mask; refused where actions cannot be masked."""
    if isinstance(space, Discrete):
        return space.n
    if isinstance(space, MultiDiscrete):
        return sum(space.sizes)
    raise UsageError(f"Real-valued actions have no masks, but masks=true is given for {space}: leave it out.")


def as_frame(drawn: Any) -> npt.NDArray[np.uint8] | None:
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
