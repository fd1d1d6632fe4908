"""ProcGen as EnvPool compiles it: the same games, for machines where ProcGen's own wheel does not install.

EnvPool's other environments are in `gapfloor.engines.pool_engine`; a name tells which of the two is meant.

Every slot is a pool of its own with one environment and one level: EnvPool cannot be told which level to play next,
but a pool of one level plays no other, and making one takes a millisecond. So every episode starts in a fresh game,
levels are chosen as in the other engines, and a slot that waits costs nothing. States cannot be saved: there is no
calibration here. On Linux EnvPool draws with the system's Qt, whose version changes pixels, so it is part of the
engine's version.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Discrete
from gapfloor.engines import pool_engine, procgen
from gapfloor.engines.catalogue import ENVPOOL
from gapfloor.engines.drawn_levels import DrawnLevels
from gapfloor.engines.protocol import Engine, EngineSpec, Option, Step
from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.levels import LevelSet, draw_levels

__all__ = ["EnvpoolEngine", "check_levels", "draw_levels", "engine_from_spec", "engine_version", "make_spec"]

#: What to say where a state would have to be saved.
NO_CLONING = "EnvPool cannot save and load states, so there is no calibration with it"

_ONLY = np.zeros(1, dtype=np.int32)
"""The number of the only environment of a pool."""


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


def check_levels(spec: EngineSpec, levels: LevelSet) -> None:
    """Refuse level sets that a game of ProcGen does not have; elsewhere every seed is a level."""
    if not is_environment(spec.game):
        procgen.check_levels(spec, levels)


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> Engine:
    """A running engine of `spec`; refuses a specification made with another version of EnvPool or of Qt."""
    if is_environment(spec.game):
        return pool_engine.engine_from_spec(spec, slots=slots, levels=levels, draw=draw)
    if spec.version != engine_version():
        raise UsageError(
            f"This was made with EnvPool {spec.version} and {engine_version()} is installed: install that version, or "
            "measure again in another --store."
        )
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


class EnvpoolEngine(DrawnLevels):
    """A batch of ProcGen slots in EnvPool; see `gapfloor.engines.protocol.Engine` for what each method promises.

    A fresh engine plays through its draw of levels. After the first call of `begin` the caller decides what is played,
    and a slot whose episode has ended waits until it begins again.
    """

    can_clone = False
    idle_slots_cost = False
    action_space = Discrete(procgen.N_ACTIONS)
    n_actions = procgen.N_ACTIONS
    masks = None
    noop = procgen.NOOP
    action_names: tuple[str, ...] = procgen.ACTION_NAMES
    observation_shape: tuple[int, ...] = procgen.OBSERVATION_SHAPE

    def __init__(self, spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> None:
        check_levels(spec, levels)
        super().__init__(slots=slots, levels=levels, draw=draw)
        self.spec = spec
        self._observations = np.zeros((slots, *self.observation_shape), dtype=np.uint8)
        self._rewards = np.zeros(slots, dtype=np.float32)
        self._firsts = np.ones(slots, dtype=bool)
        self._pools: list[Any] = [None] * slots
        """None for a slot that waits."""

    def observe(self) -> Step:
        self._start()
        return self._observations, self._rewards, self._firsts

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> Step:
        self._start()
        given = np.ascontiguousarray(actions, dtype=np.int32)
        playing = [slot for slot, pool in enumerate(self._pools) if pool is not None]
        # All are sent before the first is received: the pools' threads then work while this one does.
        for slot in playing:
            self._pools[slot]._send([_ONLY, _ONLY, given[slot : slot + 1]])
        self._rewards[:] = 0
        for slot in playing:
            self._receive(slot)
        return self._observations, self._rewards, self._firsts

    def save(self, slot: int) -> Any:
        raise UsageError(f"{NO_CLONING}.")

    def load(self, slot: int, state: Any) -> None:
        raise UsageError(f"{NO_CLONING}.")

    def frame(self, slot: int) -> npt.NDArray[np.uint8]:
        self._start()
        frame: npt.NDArray[np.uint8] = self._observations[slot].copy()
        return frame

    def close(self) -> None:
        self._pools = [None] * self.n_slots

    def _play(self, slot: int, level_seed: int) -> None:
        pool = _one_level_pool(self.spec, level_seed)
        self._pools[slot] = pool
        pool._reset(_ONLY)
        state = _named(pool)
        if state["info:level_seed"][0] != level_seed:
            raise UsageError(
                f"EnvPool {self.spec.version} plays level {state['info:level_seed'][0]} of {self.spec.game} where "
                f"{level_seed} was asked for: this version of it cannot be used."
            )
        self._observations[slot] = state["obs"][0]
        self._level[slot], self._firsts[slot] = level_seed, True

    def _receive(self, slot: int) -> None:
        state = _named(self._pools[slot])
        self._rewards[slot] = state["reward"][0]
        self._firsts[slot] = state["done"][0]
        if not self._firsts[slot]:
            self._observations[slot] = state["obs"][0]
        elif self._follows_draw:
            self._play(slot, self._next_level(slot))
        else:
            self._pools[slot] = None
            self._observations[slot] = 0


def _one_level_pool(spec: EngineSpec, level_seed: int) -> Any:
    # EnvPool ends the process on invalid settings; they were checked when the recipe was made.
    import envpool

    mode = "hard" if spec.mode == "exploration" else spec.mode
    return envpool.make(
        f"{spec.game.capitalize()}{mode.capitalize()}-v0",
        env_type="gymnasium",
        num_envs=1,
        num_threads=1,
        num_levels=1,
        start_level=level_seed,
        channel_first=False,
        **dict(spec.options),
    )


def _named(pool: Any) -> dict[str, Any]:
    # The pool's own `recv` takes twice as long: it makes a tree of the same arrays.
    return dict(zip(pool._state_keys, pool._recv(), strict=True))
