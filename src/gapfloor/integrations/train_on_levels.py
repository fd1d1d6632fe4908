"""A Gymnasium wrapper that trains on one level set and never plays a held-out level, for any library.

    env = gapfloor.TrainOnLevels(gymnasium.make("CartPole-v1"), "0:200")

Each episode plays a level that is drawn from the set. A library's seed (`reset(seed=...)`) seeds the draws and is never
used as a level itself, so a training seed of 1000 does not play level 1000. In a vector environment each copy wraps its
own environment and gets its own seed from the library.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from gapfloor.errors import UsageError
from gapfloor.levels.schedule import LevelSet, check_disjoint


class TrainOnLevels(gymnasium.Wrapper):  # type: ignore[misc]  # the library is not typed here
    """Plays only levels of `levels`; the level of an episode is in `info["level_seed"]`.

    Args:
        env: an environment in which the seed of `reset` is the level.
        levels: the training levels, e.g. `0:200`.
        held_out: the levels that must never be played in training; the two sets must not overlap.
        seed: seeds the draws of levels until the library gives a seed of its own.

    Examples:
        >>> import gapfloor, gymnasium
        >>> env = gapfloor.TrainOnLevels(gymnasium.make("CartPole-v1"), "0:200")
        >>> _, info = env.reset(seed=1000)
        >>> 0 <= info["level_seed"] < 200
        True
    """

    def __init__(
        self, env: Any, levels: str = "0:200", *, held_out: str = "1000:1100", seed: int = 0
    ) -> None:
        super().__init__(env)
        self.levels = LevelSet.parse(levels)
        check_disjoint(self.levels, LevelSet.parse(held_out))
        self._draws = np.random.default_rng(seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode on a level of the set; `options={"level": 7}` asks for one of its levels."""
        if seed is not None:
            self._draws = np.random.default_rng(seed)
        further = dict(options or {})
        asked = further.pop("level", None)
        level = (
            int(self._draws.integers(self.levels.start, self.levels.stop)) if asked is None else int(asked)
        )
        if level not in self.levels:
            raise UsageError(f"Level {level} is not a training level: training plays {self.levels} only.")
        observation, info = self.env.reset(seed=level, options=further or None)
        return observation, {**info, "level_seed": level}
