"""EnvPool's environments as Gymnasium's: `envpool:starpilot`, `envpool:Pong-v5`, `envpool:WalkerWalk-v1` and so on.

A name tells which of two kinds is meant. EnvPool compiles the games of ProcGen, for machines where ProcGen's own wheel
does not install: a pool of one level plays no other. In its other environments a seed is read only when a pool is made,
and only the first episode is a function of the seed and the actions. So every episode gets a pool of its own with one
environment. Making one takes between 0.3 ms (classic control) and 0.3 s (Atari), see research-notes/environments.md.

On Linux EnvPool draws ProcGen with the system's Qt. Its version changes pixels, so it is part of the engine's version.
"""

from __future__ import annotations

import ctypes
import functools
import math
import re
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines import procgen
from gapfloor.engines.engine import ENVPOOL, EngineSpec, Option
from gapfloor.engines.gymnasium import engine
from gapfloor.engines.gymnasium.description import score_name
from gapfloor.errors import MissingExtraError, UnknownEnvironmentError, UsageError, unknown_name
from gapfloor.settings import shipped

_KNOWN = shipped("data/engines.toml")["envpool"]

#: EnvPool writes the largest and smallest floating-point numbers where an action has no bounds.
NO_BOUND = 1e30

#: EnvPool's own names of ProcGen's games.
_PROCGEN_ID = re.compile("([A-Z][a-z]+)(Easy|Hard|Extreme|Memory|Exploration)-v0")

_ONLY = np.zeros(1, dtype=np.int32)
"""The number of the only environment of a pool."""


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of a game of ProcGen, with its modes and options, or of another environment of EnvPool."""
    if is_environment(game):
        return engine.make_spec(game, mode=mode, options=options, engine=ENVPOOL.name)
    mode = mode or "easy"
    changed = procgen.checked_options(game, mode=mode, options=options)
    return EngineSpec(ENVPOOL.name, engine_version(), game, mode, changed)


def is_environment(game: str) -> bool:
    """Whether a name is an ID of EnvPool (`Pong-v5`), not a game of ProcGen.

    >>> is_environment("Pong-v5"), is_environment("MetaWorld/Reach-v3"), is_environment("starpilot")
    (True, True, False)
    """
    found = _PROCGEN_ID.fullmatch(game)
    if found is not None and (of_procgen := found.group(1).lower()) in procgen.GAMES:
        raise UsageError(
            f"The seed of {game} is not its level: write envpool:{of_procgen} with --mode easy, hard, ..."
        )
    return "/" in game or game.rpartition("-v")[2].isdecimal()


engine_from_spec = engine.engine_from_spec


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


class PoolEnvironment:
    """One environment of EnvPool with Gymnasium's methods; every reset makes a pool."""

    render_mode = "rgb_array"
    spec = SimpleNamespace(max_episode_steps=True)
    """Every environment of EnvPool has a limit."""

    def __init__(self, asked: EngineSpec) -> None:
        self._game = "" if is_environment(asked.game) else asked.game
        self._name = f"{self._game.capitalize()}{asked.mode.capitalize()}-v0" if self._game else asked.game
        self.version = engine_version() if self._game else ENVPOOL.installed_version()
        self._settings = {name: value for name, value in asked.options if name not in _KNOWN["own_options"]}
        if self._game:
            self._settings |= {"num_levels": 1, "channel_first": False}
            self.action_names = procgen.ACTION_NAMES
        spec = _pool_spec(self._name, tuple(self._settings.items()))
        self.action_space, self._action = _action_space(spec.action_array_spec, game=self._name)
        states: Mapping[str, Any] = spec.state_array_spec
        self.observation_space = _observation_space(_parts(states, "obs"))
        masks = [name for name in states if name.endswith("action_mask")]
        if masks:
            self.action_masks = lambda: self._state[masks[0]]
        if asked.option("score") is not None:
            score_name(asked, _parts(states, "info"))

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        """The first observation of a level, in a pool of its own."""
        import envpool

        place = {"start_level": seed} if self._game else {"seed": seed}
        self._pool = envpool.make(
            self._name, env_type="gymnasium", num_envs=1, num_threads=1, **self._settings, **place
        )
        self._pool._reset(_ONLY)
        observation, info = self._receive()
        if self._game and info["level_seed"][0] != seed:
            raise UsageError(
                f"EnvPool {self.version} plays level {info['level_seed'][0]} of {self._game} where {seed} was asked "
                "for: this version of it cannot be used."
            )
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """What follows an action; the pool is freed where the episode ends."""
        row = np.ascontiguousarray(np.asarray(action, dtype=self._action.dtype)).reshape(self._action.shape)
        self._pool._send([_ONLY, _ONLY, row])
        observation, info = self._receive()
        has_ended = bool(self._state["done"][0])
        if has_ended:
            self._pool = None
        return observation, self._state["reward"][0], has_ended, False, info

    def _receive(self) -> tuple[Any, dict[str, Any]]:
        # The pool's own `recv` takes twice as long: it makes a tree of the same arrays.
        self._state = dict(zip(self._pool._state_keys, self._pool._recv(), strict=True))
        seen = {key: each[0] for key, each in _parts(self._state, "obs").items()}
        return seen.get("", seen), _parts(self._state, "info")

    def render(self) -> npt.NDArray[Any] | None:
        """The newest picture, where the observation is one."""
        return last_picture(self._state["obs"][0]) if "obs" in self._state else None


def _parts(states: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The parts of a state that are observations or info (`kind`), without that word before their names."""
    split = ((name.partition(":"), each) for name, each in states.items())
    return {key: each for (found, _, key), each in split if found == kind}


@functools.lru_cache(maxsize=64)
def _pool_spec(name: str, settings: tuple[tuple[str, Option], ...]) -> Any:
    """EnvPool's own specification; EnvPool ends the process on some wrong settings, so they are checked first."""
    import envpool

    known = envpool.list_all_envs()
    if name not in known:
        raise UnknownEnvironmentError(str(unknown_name("environment of EnvPool", name, known)))
    usual_spec = envpool.make_spec(name)
    usual = dict(zip(usual_spec._config_keys, usual_spec._config_values, strict=True))
    for option, value in settings:
        if option in _KNOWN["reserved"] or option not in usual:
            offered = sorted(set(usual) - set(_KNOWN["reserved"])) + _KNOWN["own_options"]
            raise unknown_name(f"option of {name}", option, offered)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not (is_number if isinstance(usual[option], float) else type(value) is type(usual[option])):
            raise UsageError(
                f"The option {option} of {name} is {value!r}: EnvPool's own value is {usual[option]!r}, give one of "
                "that type."
            )
    if usual["max_num_players"] > 1:
        raise UsageError(f"{name} has several players: gapfloor measures environments with one.")
    return envpool.make_spec(name, **dict(settings))


def _observation_space(arrays: Mapping[str, Any]) -> Any:
    """The space of the observation; only shapes and types matter."""
    from gymnasium import spaces

    boxes = {}
    for key, array in arrays.items():
        dtype = np.dtype(array.dtype)
        low, high = (-np.inf, np.inf) if dtype.kind == "f" else (0, 1)
        boxes[key] = spaces.Box(low, high, _shape(array), dtype.type)
    return boxes[""] if "" in boxes else spaces.Dict(boxes)


def _action_space(arrays: Mapping[str, Any], *, game: str) -> tuple[Any, npt.NDArray[Any]]:
    """The space of the actions of one player, and an example of the array that EnvPool takes."""
    from gymnasium import spaces

    names = [name for name in arrays if name not in ("env_id", "players.env_id")]
    if len(names) != 1:
        raise UsageError(
            f"An action of {game} has {len(names)} parts ({', '.join(names)}): gapfloor measures those of one."
        )
    array = arrays[names[0]]
    shape, dtype = _shape(array), np.dtype(array.dtype)
    low, high = (np.broadcast_to(np.asarray(bound), shape) for bound in (array.minimum, array.maximum))
    if array.is_discrete or dtype.kind in "iu":
        low, high = low.astype(np.int64), high.astype(np.int64)
        many = spaces.MultiDiscrete(high - low + 1, start=low) if shape else None
        return many or spaces.Discrete(int(high - low) + 1, start=int(low)), np.zeros((1, *shape), dtype)
    low, high = (np.where(np.abs(b) < NO_BOUND, b, np.sign(b) * np.inf) for b in (low, high))
    # The smallest positive number stands for no bound.
    low = np.where((low > 0) & (low < 1 / NO_BOUND), -np.inf, low)
    low, high = (bound.astype(dtype).reshape(shape or (1,)) for bound in (low, high))
    return spaces.Box(low, high, dtype=dtype.type), np.zeros((1, *(shape or (1,))), dtype)


def _shape(array: Any) -> tuple[int, ...]:
    """The shape of one environment's array: -1 stands for its only player."""
    return tuple(size for size in array.shape if size != -1)


def last_picture(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The newest picture of a stack with channels first, in three colours; other arrays as they are.

    >>> last_picture(np.zeros((4, 84, 84), dtype=np.uint8)).shape, last_picture(np.zeros(5)).shape
    ((84, 84, 3), (5,))
    """
    if rows.dtype != np.uint8 or rows.ndim != 3 or rows.shape[0] >= min(rows.shape[1:]):
        return rows
    colours = 3 if rows.shape[0] % 3 == 0 else 1
    newest = np.moveaxis(rows[-colours:], 0, -1)
    return np.repeat(newest, 3 // colours, axis=-1)
