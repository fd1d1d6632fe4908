"""Vector environments of a user's factory as an engine, whatever they do by themselves when an episode ends.

Gymnasium's vector environments reset themselves in the step after an episode's last (NEXT_STEP), within that
step (SAME_STEP), or not at all (DISABLED). The levels that they would choose are not part of any draw. So, whatever the
mode, we put each environment at its next level ourselves, with a reset of that one environment, and count episodes
here. A step that only resets (NEXT_STEP), or that plays an environment whose slot is waiting, is never counted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions
from gapfloor.engines.environment_batch import EnvironmentBatch, as_frame
from gapfloor.engines.gymnasium.description import describe
from gapfloor.engines.gymnasium.factory import Recipe, make_env, takes_num_envs
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet

#: Modes in which an ended environment may be stepped on; in others it is reset at once.
_RESETS_ITSELF = ("NextStep", "SameStep")


class VectorEngine(EnvironmentBatch):
    """One or more vector environments that together have at least as many environments as there are slots."""

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

    def _advance(self, slots: list[int], actions: Actions) -> tuple[Sequence[Any], Sequence[int]]:
        rest = len(self._vectors) * self._size - self.n_slots
        idle = np.array([self.noop] * rest, dtype=actions.dtype).reshape(rest, *actions.shape[1:])
        padded = self.description.form.batch(np.concatenate([actions, idle]))
        rewards: list[Any] = []
        ended: list[int] = []
        for number, vector in enumerate(self._vectors):
            first = number * self._size
            mine = self._plays[first : first + self._size]
            rows = self._step_vector(vector, first, mine, padded[first : first + self._size])
            rewards += rows[0]
            ended += rows[1]
        return rewards, ended

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

    def _step_vector(
        self, vector: Any, first: int, plays: npt.NDArray[np.bool_], actions: Actions
    ) -> tuple[list[Any], list[int]]:
        """Step one vector environment, whose slots begin at `first`: rewards of those that play, and which ended."""
        try:
            observations, rewards, terminated, truncated, _ = vector.step(actions)
            ended = (np.asarray(terminated) | np.asarray(truncated)).reshape(self._size)
            playing = np.flatnonzero(plays)
            earned = list(np.asarray(rewards)[playing])
        except Exception as error:
            raise self._fail("step", error) from error
        self._show_rows(vector, observations, first, playing[~ended[playing]])
        if self.description.autoreset not in _RESETS_ITSELF and ended.any():
            self._reset_rows(vector, ended, seed=0)
        return earned, (first + playing[ended[playing]]).tolist()

    def _show_rows(
        self, vector: Any, observations: Any, first: int, rows: npt.NDArray[np.integer[Any]]
    ) -> None:
        """Show rows of a vector environment: an array is copied at once."""
        shape = (self._size, *(self._plain_shape or ()))
        if self._plain_shape and isinstance(observations, np.ndarray) and observations.shape == shape:
            self._rows[first + rows] = observations[rows]
            return
        from gymnasium.vector.utils import iterate

        each = list(iterate(vector.observation_space, observations))
        for row in rows.tolist():
            self._show(first + row, each[row])

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
