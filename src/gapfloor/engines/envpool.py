"""ProcGen as EnvPool compiles it: the same games, for machines where ProcGen's own wheel does not install.

EnvPool's other environments are in `gapfloor.engines.pool_engine`; a name tells which of the two is meant.

Every slot is a pool of its own with one environment and one level: EnvPool cannot be told which level to play next,
but a pool of one level plays no other, and making one takes a millisecond. On Linux EnvPool draws with the system's Qt,
whose version changes pixels, so it is part of the engine's version.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Mapping
from typing import Any

from gapfloor.actions.spaces import Discrete
from gapfloor.engines import pool_engine, procgen
from gapfloor.engines.catalogue import ENVPOOL
from gapfloor.engines.engine import Engine, EngineSpec, Option
from gapfloor.engines.gymnasium.actions import ActionForm
from gapfloor.engines.gymnasium.description import Description
from gapfloor.engines.gymnasium.factory import Recipe
from gapfloor.engines.gymnasium.spaces import Layout, Part
from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.levels import LevelSet, draw_levels

__all__ = ["EnvpoolEngine", "draw_levels", "engine_from_spec", "engine_version", "make_spec"]


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of a game of ProcGen, with its modes and options, or of another environment of EnvPool."""
    if is_environment(game):
        return pool_engine.make_spec(game, mode=mode, options=options)
    mode = mode or "easy"
    changed = procgen.checked_options(game, mode=mode, options=options)
    return EngineSpec(ENVPOOL.name, engine_version(), game, mode, changed)


def is_environment(game: str) -> bool:
    """Whether a name is an ID of EnvPool (`Pong-v5`), not a game of ProcGen.

    >>> is_environment("Pong-v5"), is_environment("MetaWorld/Reach-v3"), is_environment("starpilot")
    (True, True, False)
    """
    found = _ID.fullmatch(game)
    if found and found.group(1).lower() in procgen.GAMES:
        raise UsageError(
            f"The seed of {game} is not its level: write envpool:{found.group(1).lower()} with --mode easy, hard, ..."
        )
    return "/" in game or game.rpartition("-v")[2].isdecimal()


_ID = re.compile(f"([A-Z][a-z]+)({'|'.join(mode.capitalize() for mode in procgen.MODE_GAMES)})-v0")


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> Engine:
    """A running engine of `spec`; refuses a specification made with another version of EnvPool or of Qt."""
    if is_environment(spec.game):
        return pool_engine.engine_from_spec(spec, slots=slots, levels=levels, draw=draw)
    ENVPOOL.check_version(spec.version, engine_version())
    return EnvpoolEngine(spec, slots=slots, levels=levels, draw=draw)


@functools.cache
def engine_version() -> str:
    """The installed version of EnvPool, with that of the system's Qt where pixels come from there.

    For example `1.2.5+qt5.15.8`.
    """
    wheel = ENVPOOL.installed_version()
    return f"{wheel}+qt{_system_qt()}" if sys.platform == "linux" else wheel


def _system_qt() -> str:
    try:
        ctypes.CDLL("libQt5Gui.so.5")
        version = ctypes.CDLL("libQt5Core.so.5").qVersion
    except OSError:
        raise MissingExtraError(
            "EnvPool draws ProcGen with the system's Qt 5, which is not installed: apt install libqt5gui5 "
            "(or dnf install qt5-qtbase-gui)."
        ) from None
    version.restype = ctypes.c_char_p
    return bytes(version()).decode()


class EnvpoolEngine(pool_engine.PoolEngine):
    """A batch of ProcGen slots in EnvPool; see `gapfloor.engines.engine.Engine` for what each method promises."""

    def __init__(self, spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> None:
        frames = Layout((Part((), procgen.OBSERVATION_SHAPE, "|u1"),))
        description = Description(
            spec.version, ActionForm(Discrete(procgen.N_ACTIONS), dtype="<i4"), procgen.NOOP,
            f"action {procgen.NOOP}", procgen.ACTION_NAMES, frames,
        )  # fmt: skip
        super().__init__(
            Recipe(spec.game, spec.options), slots=slots, levels=levels, draw=draw, description=description
        )
        self.spec = spec

    def _make_pool(self, level_seed: int) -> Any:
        """A pool of one level: EnvPool ends the process on invalid settings, which were checked with the recipe."""
        import envpool

        return envpool.make(
            f"{self.spec.game.capitalize()}{self.spec.mode.capitalize()}-v0",
            env_type="gymnasium",
            num_envs=1,
            num_threads=1,
            num_levels=1,
            start_level=level_seed,
            channel_first=False,
            **dict(self.spec.options),
        )

    def _check_level(self, state: Mapping[str, Any], level_seed: int) -> None:
        if state["info:level_seed"][0] != level_seed:
            raise UsageError(
                f"EnvPool {self.spec.version} plays level {state['info:level_seed'][0]} of {self.spec.game} where "
                f"{level_seed} was asked for: this version of it cannot be used."
            )
