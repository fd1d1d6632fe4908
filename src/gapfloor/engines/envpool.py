"""EnvPool's environments as an engine: `envpool:starpilot`, `envpool:Pong-v5`, `envpool:WalkerWalk-v1` and so on.

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
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions, Discrete
from gapfloor.engines import procgen
from gapfloor.engines.catalogue import ENVPOOL
from gapfloor.engines.engine import Engine, EngineSpec, Option
from gapfloor.engines.environment_batch import EnvironmentBatch, as_frame
from gapfloor.engines.gymnasium.actions import ActionForm, action_form
from gapfloor.engines.gymnasium.description import Description, noop_of, score_name
from gapfloor.engines.gymnasium.engine import MODE
from gapfloor.engines.gymnasium.factory import Recipe
from gapfloor.engines.gymnasium.spaces import Layout, Part, copy_row
from gapfloor.errors import MissingExtraError, UnknownEnvironmentError, UsageError, unknown_name
from gapfloor.levels import LevelSet

#: Settings of a pool that decide how it runs, not what is played: gapfloor sets them itself.
RESERVED = (
    "num_envs", "batch_size", "num_threads", "max_num_players", "thread_affinity_offset", "base_path", "seed",
    "env_seed", "gym_reset_return_info",
)  # fmt: skip

#: Options that gapfloor reads itself.
OWN_OPTIONS = ("masks", "noop", "score", "action_low", "action_high")

#: EnvPool writes the largest and smallest floating-point numbers where an action has no bounds.
NO_BOUND = 1e30

_ONLY = np.zeros(1, dtype=np.int32)
"""The number of the only environment of a pool."""


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of a game of ProcGen, with its modes and options, or of another environment of EnvPool."""
    if not is_environment(game):
        mode = mode or "easy"
        changed = procgen.checked_options(game, mode=mode, options=options)
        return EngineSpec(ENVPOOL.name, engine_version(), game, mode, changed)
    if mode not in (None, MODE):
        raise UsageError(
            f"{game} has no modes: --mode {mode} is for ProcGen. Give settings of EnvPool as options, e.g. "
            "--option frame_skip=1."
        )
    recipe = Recipe(game, tuple(sorted((options or {}).items())))
    return EngineSpec(ENVPOOL.name, describe_pool(recipe).version, game, MODE, recipe.options)


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


#: EnvPool's own names of ProcGen's games.
_ID = re.compile("([A-Z][a-z]+)(Easy|Hard|Extreme|Memory|Exploration)-v0")


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> Engine:
    """A running engine of `spec`; refuses a specification made with another version of EnvPool or of Qt."""
    installed = ENVPOOL.installed_version() if is_environment(spec.game) else engine_version()
    ENVPOOL.check_version(spec.version, installed)
    return PoolEngine(spec, slots=slots, levels=levels, draw=draw)


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


class PoolEngine(EnvironmentBatch):
    """A batch of pools with one environment each; see `gapfloor.engines.engine.Engine`."""

    def __init__(self, spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> None:
        self.spec, self._is_procgen = spec, not is_environment(spec.game)
        recipe = Recipe(spec.game, tuple(sorted(spec.options)))
        description = _describe_procgen(spec.version) if self._is_procgen else describe_pool(recipe)
        super().__init__(recipe, description, slots=slots, levels=levels, draw=draw)
        self._pools: list[Any] = [None] * slots

    def _advance(self, slots: list[int], actions: Actions) -> tuple[Sequence[Any], Sequence[int]]:
        form = self.description.form
        # All are sent before the first is received: the pools' threads then work while this one does.
        for slot in slots:
            action = form.to_environment(actions[slot])
            row = np.ascontiguousarray(np.asarray(action, dtype=form.dtype).reshape(1, *form.shape))
            self._pools[slot]._send([_ONLY, _ONLY, row])
        rewards, ended = [], []
        for slot in slots:
            state = _received(self._pools[slot])
            rewards.append(self._score(slot, state) if self._scores else state["reward"][0])
            if state["done"][0]:
                ended.append(slot)
                self._pools[slot] = None
            else:
                self._see(slot, state, state)
        return rewards, ended

    def frame(self, slot: int) -> npt.NDArray[np.uint8] | None:
        self._start()
        shown = copy_row(self._rows, slot)
        return None if isinstance(shown, Mapping) else as_frame(last_picture(shown))

    def close(self) -> None:
        self._pools = [None] * self.n_slots

    def _reset(self, slot: int, level_seed: int) -> tuple[Any, Any]:
        self._pools[slot] = pool = self._make_pool(level_seed)
        pool._reset(_ONLY)
        state = _received(pool)
        if self._is_procgen and state["info:level_seed"][0] != level_seed:
            raise UsageError(
                f"EnvPool {self.spec.version} plays level {state['info:level_seed'][0]} of {self.spec.game} where "
                f"{level_seed} was asked for: this version of it cannot be used."
            )
        return state, state

    def _make_pool(self, level_seed: int) -> Any:
        """A pool of one level: EnvPool ends the process on invalid settings, which were checked with the recipe."""
        import envpool

        name, settings = self.spec.game, {"seed": level_seed, **pool_settings(self.recipe)}
        if self._is_procgen:
            name = f"{name.capitalize()}{self.spec.mode.capitalize()}-v0"
            settings = {"num_levels": 1, "start_level": level_seed, "channel_first": False}
            settings |= dict(self.spec.options)
        return envpool.make(name, env_type="gymnasium", num_envs=1, num_threads=1, **settings)

    def _show(self, slot: int, state: Mapping[str, Any]) -> None:
        found = self.description
        if found.layout.is_plain:
            self._rows[slot] = state["obs"][0]
        else:
            for part in found.layout.parts:
                self._rows[part.key][slot] = state[f"obs:{part.key}"][0]


def _describe_procgen(version: str) -> Description:
    frames = Layout((Part((), procgen.OBSERVATION_SHAPE, "|u1"),))
    form = ActionForm(Discrete(procgen.N_ACTIONS), dtype="<i4")
    words = f"action {procgen.NOOP}"
    return Description(version, form, procgen.NOOP, words, procgen.ACTION_NAMES, frames)


@functools.lru_cache(maxsize=64)
def describe_pool(recipe: Recipe) -> Description:
    """What an environment of EnvPool is, by its own specification; refuses wrong names and settings."""
    version = ENVPOOL.installed_version()
    spec = _pool_spec(recipe)
    states: Mapping[str, Any] = spec.state_array_spec
    form = _action_form(spec.action_array_spec, recipe)
    parts = [_part(name, array) for name, array in states.items() if name.partition(":")[0] == "obs"]
    masks = [name for name in states if name.endswith("action_mask")]
    wanted = recipe.own("masks")
    if wanted and not masks:
        raise UsageError(
            f"{recipe.game} does not say which actions are legal: leave out --option masks=true."
        )
    names = tuple(map(str, range(form.space.n))) if isinstance(form.space, Discrete) else ()
    noop, words = noop_of(recipe, form, names)
    info = [name for name in states if name.startswith("info:")]
    if recipe.own("score") is not None:
        score_name(recipe, info)
    return Description(
        version, form, noop, words, names, Layout(tuple(parts)), masks=masks[0] if wanted else "",
        offers_masks=bool(masks),
    )  # fmt: skip


def _pool_spec(recipe: Recipe) -> Any:
    """EnvPool's own specification; EnvPool ends the process on some wrong settings, so they are checked first."""
    import envpool

    known = envpool.list_all_envs()
    if recipe.game not in known:
        error = unknown_name("environment of EnvPool", recipe.game, known)
        raise UnknownEnvironmentError(str(error))
    usual = envpool.make_spec(recipe.game)
    settings = dict(zip(usual._config_keys, usual._config_values, strict=True))
    for name, value in pool_settings(recipe).items():
        if name in RESERVED or name not in settings:
            offered = sorted(set(settings) - set(RESERVED)) + list(OWN_OPTIONS)
            raise unknown_name(f"option of {recipe.game}", name, offered)
        if not _fits(value, settings[name]):
            raise UsageError(
                f"The option {name} of {recipe.game} is {value!r}: EnvPool's own value is {settings[name]!r}, give one "
                "of that type."
            )
    if settings["max_num_players"] > 1:
        raise UsageError(f"{recipe.game} has several players: gapfloor measures environments with one.")
    return envpool.make_spec(recipe.game, **pool_settings(recipe))


def pool_settings(recipe: Recipe) -> dict[str, Option]:
    """The options that EnvPool reads."""
    return {name: value for name, value in recipe.options if name not in OWN_OPTIONS}


def _fits(value: Option, usual: Any) -> bool:
    if isinstance(usual, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return type(value) is type(usual)


def _action_form(arrays: Mapping[str, Any], recipe: Recipe) -> ActionForm:
    from gymnasium import spaces

    names = [name for name in arrays if name not in ("env_id", "players.env_id")]
    if len(names) != 1:
        raise UsageError(
            f"An action of {recipe.game} has {len(names)} parts ({', '.join(names)}): gapfloor measures those of one."
        )
    array = arrays[names[0]]
    shape, dtype = _shape(array), np.dtype(array.dtype)
    low, high = (np.broadcast_to(np.asarray(bound), shape) for bound in (array.minimum, array.maximum))
    if array.is_discrete or dtype.kind in "iu":
        low, high = low.astype(np.int64), high.astype(np.int64)
        if not shape:
            form = action_form(
                spaces.Discrete(int(high - low) + 1, start=int(low)), game=recipe.game, options={}
            )
            return ActionForm(form.space, form.start, (), dtype.str)
        sizes = high - low + 1
        space: Any = spaces.MultiDiscrete(sizes.astype(np.int64), start=low.astype(np.int64))
        form = action_form(space, game=recipe.game, options={})
        return ActionForm(form.space, form.start, shape, dtype.str)
    low, high = (np.where(np.abs(b) < NO_BOUND, b, np.sign(b) * np.inf) for b in (low, high))
    low = np.where(
        (low > 0) & (low < 1 / NO_BOUND), -np.inf, low
    )  # the smallest positive number stands for no bound
    if not shape:
        shape = (1,)
        low, high = low.reshape(1), high.reshape(1)
    box = spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype.type)
    return action_form(box, game=recipe.game, options=dict(recipe.options))


def _shape(array: Any) -> tuple[int, ...]:
    """The shape of one environment's array: -1 stands for its only player."""
    return tuple(size for size in array.shape if size != -1)


def _part(name: str, array: Any) -> Part:
    _, _, key = name.partition(":")
    return Part((key,) if key else (), _shape(array), np.dtype(array.dtype).str)


def _received(pool: Any) -> dict[str, Any]:
    # The pool's own `recv` takes twice as long: it makes a tree of the same arrays.
    return dict(zip(pool._state_keys, pool._recv(), strict=True))


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
