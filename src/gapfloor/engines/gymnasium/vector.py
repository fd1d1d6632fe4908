"""Vector environments of a user's factory as an engine, whatever they do by themselves when an episode ends.

Gymnasium's vector environments reset themselves in the step after an episode's last (NEXT_STEP), within that
step (SAME_STEP), or not at all (DISABLED). The levels that they would choose are not part of any draw. So, whatever the
mode, we put each environment at its next level ourselves, with a reset of that one environment, and count episodes
here. A step that only resets (NEXT_STEP), or that plays an environment whose slot is waiting, is never counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions
from gapfloor.engines.environment_batch import EnvironmentBatch, SlotStep, as_frame
from gapfloor.engines.gymnasium.description import describe
from gapfloor.engines.gymnasium.factory import Recipe, make_env, takes_num_envs
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet

#: Modes in which an ended environment may be stepped on; in others it is reset at once.
_RESETS_ITSELF = ("NextStep", "SameStep")


class VectorEngine(EnvironmentBatch):
    """One or more vector environments that together have at least as many environments as there are slots."""

    idle_slots_cost = True

    def __init__(self, recipe: Recipe, *, slots: int, levels: LevelSet, draw: int = 0) -> None:
        super().__init__(recipe, describe(recipe), slots=slots, levels=levels, draw=draw)
        found, sized = self.description, takes_num_envs(recipe)
        if not found.resets_one and not sized:
            raise UsageError(
                f"{recipe.game} makes {found.n_envs} environments that can only be reset together, so none of them can "
                "be put at a level: let the factory take num_envs, or support options['reset_mask'] in reset."
            )
        size = (slots if found.resets_one else 1) if sized else found.n_envs
        count = -(-slots // size)
        self._vectors = [make_env(recipe, n_envs=size, render_mode=found.render_mode) for _ in range(count)]
        self._size = size
        for vector in self._vectors:
            vector.reset(seed=[0] * size)

    def _advance(self, slots: Sequence[int], actions: Actions) -> Iterator[SlotStep]:
        rest = len(self._vectors) * self._size - self.n_slots
        idle = np.array([self.noop] * rest, dtype=actions.dtype).reshape(rest, *actions.shape[1:])
        padded = self.description.form.batch(np.concatenate([actions, idle]))
        for number, vector in enumerate(self._vectors):
            first = number * self._size
            rows = self._step_vector(vector, padded[first : first + self._size])
            for row, (observation, reward, has_ended) in enumerate(rows):
                if first + row < self.n_slots and self._plays[first + row]:
                    yield first + row, observation, reward, has_ended, None

    def frame(self, slot: int) -> npt.NDArray[np.uint8] | None:
        number, row = divmod(slot, self._size)
        vector = self._vectors[number]
        if getattr(vector, "render_mode", None) != "rgb_array":
            return None
        drawn = vector.render()
        return as_frame(drawn[row]) if drawn is not None else None

    def close(self) -> None:
        for vector in self._vectors:
            with contextlib.suppress(Exception):
                vector.close()

    def _step_vector(self, vector: Any, actions: Actions) -> list[tuple[Any, Any, bool]]:
        """The observation, the reward and the end of every row of a vector environment."""
        from gymnasium.vector.utils import iterate

        try:
            observations, rewards, terminated, truncated, _ = vector.step(actions)
            ended = (np.asarray(terminated) | np.asarray(truncated)).reshape(self._size)
            rows = list(
                zip(iterate(vector.observation_space, observations), rewards, ended.tolist(), strict=True)
            )
        except Exception as error:
            raise self._fail("step", error) from error
        if self.description.autoreset not in _RESETS_ITSELF and ended.any():
            self._reset_rows(vector, ended, seed=0)
        return rows

    def _reset(self, slot: int, level_seed: int) -> tuple[Any, Any]:
        from gymnasium.vector.utils import iterate

        number, row = divmod(slot, self._size)
        vector = self._vectors[number]
        mask = np.arange(self._size) == row
        observations = self._reset_rows(vector, mask, seed=level_seed)
        return list(iterate(vector.observation_space, observations))[row], None

    def _reset_rows(self, vector: Any, mask: npt.NDArray[np.bool_], *, seed: int) -> Any:
        options = {"reset_mask": mask} if self._size > 1 else None
        observations, _ = vector.reset(seed=[seed] * self._size, options=options)
        return observations
