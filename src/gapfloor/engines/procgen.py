"""ProcGen, through the `procgen-mirror` wheel: the real C++ engine, one process, no engine threads.

The C++ code ends the process on invalid arguments, so everything is checked here first. Processes without engine
threads are the fastest layout on CPUs; the workers provide the parallelism.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Discrete
from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.protocol import EngineSpec, Option, Step
from gapfloor.errors import UsageError, unknown_name
from gapfloor.levels import LevelSet
from gapfloor.levels.draws import check_draw

GAMES = (
    "bigfish", "bossfight", "caveflyer", "chaser", "climber", "coinrun", "dodgeball", "fruitbot",
    "heist", "jumper", "leaper", "maze", "miner", "ninja", "plunder", "starpilot",
)  # fmt: skip

#: The eight games of the paper, in its order; `paper` on the command line means these.
PAPER_GAMES = (
    "starpilot", "fruitbot", "bigfish", "coinrun", "miner", "dodgeball", "bossfight", "heist",
)  # fmt: skip

#: Modes that only some games have; the engine ends the process when asked for another.
MODE_GAMES: Mapping[str, tuple[str, ...]] = {
    "easy": GAMES,
    "hard": GAMES,
    "extreme": ("chaser", "dodgeball", "leaper", "starpilot"),
    "memory": ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner"),
    "exploration": ("caveflyer", "climber", "coinrun", "heist", "jumper", "leaper", "maze", "ninja"),
}

#: Exploration mode is hard mode on this one level.
EXPLORATION_LEVELS: Mapping[str, int] = {
    "caveflyer": 1259048185, "climber": 1561126160, "coinrun": 1949448038, "heist": 876640971,
    "jumper": 1434825276, "leaper": 1318677581, "maze": 158988835, "ninja": 1123500215,
}  # fmt: skip

#: Visual options and their defaults in the engine.
OPTIONS: Mapping[str, bool] = {
    "center_agent": True,
    "use_backgrounds": True,
    "use_monochrome_assets": False,
    "restrict_themes": False,
    "use_generated_assets": False,
    "paint_vel_info": False,
}

N_ACTIONS = 15
NOOP = 4
ACTION_NAMES = (
    "LEFT+DOWN", "LEFT", "LEFT+UP", "DOWN", "no-op", "UP", "RIGHT+DOWN", "RIGHT", "RIGHT+UP",
    "D", "A", "W", "S", "Q", "E",
)  # fmt: skip
OBSERVATION_SHAPE = (64, 64, 3)

_STATE_BYTES = 2**20


def check_game(game: str) -> None:
    """Refuse a name that is not a game, with the nearest names."""
    if game not in GAMES:
        raise unknown_name("game", game, GAMES)


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of a ProcGen engine."""
    mode = mode or "easy"
    changed = checked_options(game, mode=mode, options=options)
    return EngineSpec(PROCGEN.name, wheel_version(), game, mode, changed)


def checked_options(
    game: str, *, mode: str, options: Mapping[str, Option] | None
) -> tuple[tuple[str, Option], ...]:
    """The options of a recipe whose game, mode and options exist; those that equal the default are left out."""
    check_game(game)
    if mode not in MODE_GAMES:
        raise unknown_name("mode", mode, MODE_GAMES)
    if game not in MODE_GAMES[mode]:
        raise UsageError(f"{game} has no {mode} mode: it exists for {', '.join(MODE_GAMES[mode])}.")
    for name, value in (options or {}).items():
        if name not in OPTIONS:
            raise unknown_name("option", name, OPTIONS)
        if not isinstance(value, bool):
            raise UsageError(f"The option {name} is {value!r}: it must be true or false.")
    changed = {name: value for name, value in (options or {}).items() if value != OPTIONS[name]}
    return tuple(sorted(changed.items()))


def check_levels(spec: EngineSpec, levels: LevelSet) -> None:
    """Refuse level sets that the mode does not have."""
    if spec.mode == "exploration":
        only = EXPLORATION_LEVELS[spec.game]
        if (levels.start, levels.stop) != (only, only + 1):
            raise UsageError(
                f"Exploration mode of {spec.game} has one level: write {only}:{only + 1}, not {levels}."
            )


@functools.cache
def wheel_version() -> str:
    """The installed version of the engine's wheel."""
    return PROCGEN.installed_version()


def _load_wheel() -> Any:
    # gym, which the wheel imports, prints a notice about itself to standard error, which users do not need.
    wheel_version()
    with contextlib.redirect_stderr(io.StringIO()):
        from procgen.env import ProcgenGym3Env
    return ProcgenGym3Env


def _make_env(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int) -> Any:
    env = _load_wheel()(
        num=slots,
        env_name=spec.game,
        distribution_mode="hard" if spec.mode == "exploration" else spec.mode,
        num_levels=0 if levels.is_everything else levels.n,
        start_level=0 if levels.is_everything else levels.start,
        rand_seed=draw,
        num_threads=0,
        **dict(spec.options),
    )
    # The wheel looks this function up when an engine is freed, under a lock that making an engine holds. Should the
    # garbage collector free one in that very moment, the process would wait for itself for ever: look it up now.
    _ = env._c_lib.libenv_close
    return env


class _InitialStates:
    """The states in which levels start, each taken from a fresh one-level engine.

    A fresh engine for each level, because in dodgeball a slot remembers what it played before. Only the
    level's number changes between them, so the options are converted once and patched in place: a fifth
    of the time that building the wheel's Python object takes.
    """

    #: About 150 MB of states; only the whole distribution gets there.
    most = 4096

    def __init__(self, spec: EngineSpec) -> None:
        self._env = _make_env(spec, slots=1, levels=LevelSet(0, 1), draw=0)
        self._ffi, self._lib = self._env._ffi, self._env._c_lib
        self._options, self._kept = self._env._convert_options(self._ffi, self._lib, self._env._options)
        self._start_level = self._kept[list(self._env._options).index("start_level")]
        self._buffer = self._ffi.new(f"char[{_STATE_BYTES}]")
        self._states: dict[int, bytes] = {}

    def state(self, level_seed: int) -> bytes:
        state = self._states.get(level_seed)
        if state is None:
            if len(self._states) >= self.most:
                self._states.clear()
            state = self._states[level_seed] = self._make(level_seed)
        return state

    def _make(self, level_seed: int) -> bytes:
        self._start_level[0] = level_seed
        handle = self._lib.libenv_make(1, self._options[0])
        self._lib.libenv_set_buffers(handle, self._env._c_buffers)
        size = self._lib.get_state(handle, 0, self._buffer, _STATE_BYTES)
        state = bytes(self._ffi.buffer(self._buffer, size))
        self._lib.libenv_close(handle)
        return state


@functools.lru_cache(maxsize=4)
def _initial_states(spec: EngineSpec) -> _InitialStates:
    return _InitialStates(spec)


class ProcgenEngine:
    """A batch of ProcGen slots; see `gapfloor.engines.protocol.Engine` for what each method promises."""

    can_begin = can_clone = idle_slots_cost = True
    action_space = Discrete(N_ACTIONS)
    n_actions = N_ACTIONS
    masks = None
    noop = NOOP
    action_names: tuple[str, ...] = ACTION_NAMES
    observation_shape: tuple[int, ...] = OBSERVATION_SHAPE

    def __init__(
        self,
        game: str,
        *,
        slots: int,
        levels: LevelSet,
        draw: int = 0,
        mode: str = "easy",
        options: Mapping[str, Option] | None = None,
    ) -> None:
        self.spec = make_spec(game, mode=mode, options=options)
        check_levels(self.spec, levels)
        check_draw(draw)
        if slots < 1:
            raise UsageError(f"An engine needs at least 1 slot, not {slots}.")
        self.n_slots = slots
        self._env = _make_env(self.spec, slots=slots, levels=levels, draw=draw)
        self._ffi, self._lib, self._handle = self._env._ffi, self._env._c_lib, self._env._c_env
        self._buffer = self._ffi.new(f"char[{_STATE_BYTES}]")
        # The engine writes into these arrays itself; copying them every step would cost a tenth of a floor.
        self._actions = self._env._ac["action"]
        self._observations = self._env._ob["rgb"]
        self._rewards, self._firsts = self._env._rew, self._env._first
        self._levels = self._env._info["level_seed"]
        self._lib.libenv_observe(self._handle)

    @property
    def level_seeds(self) -> npt.NDArray[np.int32]:
        levels: npt.NDArray[np.int32] = self._levels
        return levels

    def observe(self) -> Step:
        return self._observations, self._rewards, self._firsts

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> Step:
        self._actions[:] = actions
        self._lib.libenv_act(self._handle)
        self._lib.libenv_observe(self._handle)
        return self._observations, self._rewards, self._firsts

    def save(self, slot: int) -> bytes:
        size = self._lib.get_state(self._handle, slot, self._buffer, _STATE_BYTES)
        state: bytes = self._ffi.buffer(self._buffer, size)[:]
        return state

    def load(self, slot: int, state: bytes) -> None:
        self._lib.set_state(self._handle, slot, state, len(state))

    def begin(self, slot: int, level_seed: int) -> None:
        self.load(slot, self.initial_state(level_seed))

    def frame(self, slot: int) -> npt.NDArray[np.uint8]:
        frame: npt.NDArray[np.uint8] = self._observations[slot].copy()
        return frame

    def initial_state(self, level_seed: int) -> bytes:
        """The state in which a level starts."""
        return _initial_states(self.spec).state(level_seed)

    def close(self) -> None:
        self._env.close()


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> ProcgenEngine:
    """A running engine of `spec`; refuses a specification made with another version of the wheel."""
    if spec.version != wheel_version():
        raise UsageError(
            f"This was made with {PROCGEN.package} {spec.version} and {wheel_version()} is installed: "
            f"pip install {PROCGEN.package}=={spec.version}"
        )
    return ProcgenEngine(
        spec.game, slots=slots, levels=levels, draw=draw, mode=spec.mode, options=dict(spec.options)
    )
