"""ProcGen: the real C++ engine, one process, no engine threads, from the wheel that this Python has.

The C++ code ends the process on invalid arguments, so everything is checked here first. Processes without engine
threads are the fastest layout on CPUs; the workers provide the parallelism. There are two builds of the same code:
`procgen-mirror` (Python 3.11 and 3.12) and `procgen-gym` (3.13 and later). Some frames differ, so cells record which
one played.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Discrete
from gapfloor.engines.engine import MIRROR, PROCGEN, EngineSpec, Option, Step
from gapfloor.engines.picture_files import is_shown, picture_folder
from gapfloor.engines.procgen_state import without_view
from gapfloor.errors import UsageError, unknown_name
from gapfloor.levels.schedule import LevelSet, check_draw
from gapfloor.machine import without_chatter
from gapfloor.settings import shipped

_FACTS = shipped("data/procgen.toml")
GAMES: tuple[str, ...] = tuple(_FACTS["games"])
PAPER_GAMES: tuple[str, ...] = tuple(_FACTS["paper"])
ACTION_NAMES: tuple[str, ...] = tuple(_FACTS["actions"])
#: The games that have each mode.
MODE_GAMES: Mapping[str, Sequence[str]] = {"easy": GAMES, "hard": GAMES, **_FACTS["modes"]}
_OPTIONS: Mapping[str, bool] = _FACTS["options"]
N_ACTIONS = len(ACTION_NAMES)
NOOP = ACTION_NAMES.index("no-op")
OBSERVATION_SHAPE = (64, 64, 3)
_STATE_BYTES = 2**20
_IS_MIRROR = PROCGEN.package == MIRROR


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
    if re.fullmatch(r"[\w/.-]+-v\d+", game):  # the form of Gymnasium's names
        raise UsageError(f"Unknown game '{game}': did you mean gym:{game}, the environment of Gymnasium?")
    if game not in GAMES:
        raise unknown_name("game", game, GAMES)
    if mode not in MODE_GAMES:
        raise unknown_name("mode", mode, MODE_GAMES)
    if game not in MODE_GAMES[mode]:
        raise UsageError(f"{game} has no {mode} mode: it exists for {', '.join(MODE_GAMES[mode])}.")
    for name, value in (options or {}).items():
        if name not in _OPTIONS:
            raise unknown_name("option", name, _OPTIONS)
        if not isinstance(value, bool):
            raise UsageError(f"The option {name} is {value!r}: it must be true or false.")
    changed = {name: value for name, value in (options or {}).items() if value != _OPTIONS[name]}
    return tuple(sorted(changed.items()))


@functools.cache
def wheel_version() -> str:
    """The installed build of the engine: a version of procgen-mirror, or `procgen-gym` with its version.

    The two builds draw some frames differently, so their cells must not share a version.
    """
    version = PROCGEN.installed_version()
    return version if _IS_MIRROR else f"{PROCGEN.package} {version}"


class _Batch:
    """A batch of slots; the engine writes into the arrays itself."""

    actions: Any
    observations: Any
    rewards: Any
    firsts: Any
    levels: Any
    _env: Any
    _lib: Any
    _handle: Any

    def observe(self) -> None:
        """Let the engine write the present observations."""
        self._lib.libenv_observe(self._handle)

    def act(self) -> None:
        """Apply `actions` and write what follows."""
        self._lib.libenv_act(self._handle)
        self._lib.libenv_observe(self._handle)

    def load(self, slot: int, state: bytes) -> None:
        """Put a slot into a saved state."""
        self._lib.set_state(self._handle, int(slot), state, len(state))

    def close(self) -> None:
        """Free the engine's memory."""
        self._env.close()


class _MirrorBatch(_Batch):
    """The build of `procgen-mirror`, which is called through cffi."""

    def __init__(self, slots: int, **settings: Any) -> None:
        # gym, which the wheel imports, prints a notice about itself to standard error, which users do not need.
        with without_chatter("stderr"):
            from procgen.env import ProcgenGym3Env
        package = Path(sys.modules[ProcgenGym3Env.__module__].__file__ or "").parent
        with picture_folder(package / "data" / "assets") as pictures:
            self._env = ProcgenGym3Env(
                num=slots, num_threads=0, resource_root=f"{pictures}{os.sep}", **settings
            )
        # The wheel looks this function up when an engine is freed, under a lock that making an engine holds. Should the
        # garbage collector free one in that very moment, the process would wait for itself for ever: look it up now.
        _ = self._env._c_lib.libenv_close
        self._ffi, self._lib, self._handle = self._env._ffi, self._env._c_lib, self._env._c_env
        self._buffer = self._ffi.new(f"char[{_STATE_BYTES}]")
        self.actions = self._env._ac["action"]
        self.observations = self._env._ob["rgb"]
        self.rewards, self.firsts = self._env._rew, self._env._first
        self.levels = self._env._info["level_seed"]

    def save(self, slot: int) -> bytes:
        """The whole state of a slot."""
        return self._saved(self._handle, slot)

    def _saved(self, handle: Any, slot: int) -> bytes:
        size = self._lib.get_state(handle, slot, self._buffer, _STATE_BYTES)
        return bytes(self._ffi.buffer(self._buffer, size))


class _MirrorLevelStarts(_MirrorBatch):
    """The states in which levels start, each from a fresh one-level engine.

    Only the level's number changes between them, so the options are converted once and patched in place: a fifth of
    the time that building the wheel's Python object takes. Row of `make bench`: "floor starpilot".
    """

    def __init__(self, spec: EngineSpec) -> None:
        super().__init__(1, **_settings(spec, levels=LevelSet(0, 1), draw=0))
        self._options, self._kept = self._env._convert_options(self._ffi, self._lib, self._env._options)
        self._start_level = self._kept[list(self._env._options).index("start_level")]

    def state(self, level_seed: int) -> bytes:
        """The state in which a level starts."""
        self._start_level[0] = level_seed
        handle = self._lib.libenv_make(1, self._options[0])
        self._lib.libenv_set_buffers(handle, self._env._c_buffers)
        state = self._saved(handle, 0)
        self._lib.libenv_close(handle)
        return state


_level_starts = functools.lru_cache(maxsize=4)(_MirrorLevelStarts)


class _GymBatch(_Batch):
    """The build of `procgen-gym`, which is called through ctypes."""

    def __init__(self, slots: int, **settings: Any) -> None:
        from procgen_gym.env import ProcgenVecEnv

        self._env = ProcgenVecEnv(num_envs=slots, num_threads=0, **settings)
        library = self._env._clib
        self._lib, self._handle = library._lib, ctypes.c_void_p(library._handle)
        self._buffer = ctypes.create_string_buffer(_STATE_BYTES)
        self.actions = library._ac_bufs["action"]
        self.observations = library._ob_bufs["rgb"]
        self.rewards, self.firsts = library._rew_buf, library._first_buf.view(np.bool_)
        self.levels = library._info_bufs["level_seed"]

    def save(self, slot: int) -> bytes:
        """The whole state of a slot."""
        size = self._lib.get_state(self._handle, int(slot), self._buffer, _STATE_BYTES)
        return ctypes.string_at(self._buffer, size)


def _settings(spec: EngineSpec, *, levels: LevelSet, draw: int) -> dict[str, Any]:
    return {
        "env_name": spec.game,
        "distribution_mode": spec.mode,
        "num_levels": 0 if levels.is_everything else levels.n,
        "start_level": 0 if levels.is_everything else levels.start,
        "rand_seed": draw,
        **dict(spec.options),
    }


@functools.lru_cache(maxsize=4096)  # about 150 MB of states; only the whole distribution gets there
def _initial_state(spec: EngineSpec, level_seed: int) -> bytes:
    """The state in which a level starts, from a fresh engine: in dodgeball a slot remembers what it played before."""
    if _IS_MIRROR:
        return _level_starts(spec).state(level_seed)
    with closing(
        _GymBatch(1, **_settings(spec, levels=LevelSet(level_seed, level_seed + 1), draw=0))
    ) as batch:
        return batch.save(0)


class ProcgenEngine:
    """A batch of ProcGen slots; see `gapfloor.engines.engine.Engine` for what each method promises."""

    can_clone = True
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
        check_draw(draw)
        if slots < 1:
            raise UsageError(f"An engine needs at least 1 slot, not {slots}.")
        self.n_slots = slots
        make = _MirrorBatch if _IS_MIRROR else _GymBatch
        self._batch = make(slots, **_settings(self.spec, levels=levels, draw=draw))
        # The engine writes into these arrays itself; copying them every step would cost a tenth of a floor.
        self._actions = self._batch.actions
        # Where pictures are blank nobody may look: an array without rows makes whoever does fail.
        self._observations = self._batch.observations[: slots if is_shown(game) else 0]
        self._rewards, self._firsts = self._batch.rewards, self._batch.firsts
        self.level_seeds: npt.NDArray[np.int32] = self._batch.levels
        self._act = self._batch.act
        self.save, self.load, self.close = self._batch.save, self._batch.load, self._batch.close
        self._batch.observe()

    def observe(self) -> Step:
        return self._observations, self._rewards, self._firsts

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> Step:
        self._actions[:] = actions
        self._act()
        return self._observations, self._rewards, self._firsts

    def begin(self, slot: int, level_seed: int) -> None:
        self.load(slot, _initial_state(self.spec, level_seed))

    def frame(self, slot: int) -> npt.NDArray[np.uint8]:
        frame: npt.NDArray[np.uint8] = self._observations[slot].copy()
        return frame

    def initial_state(self, level_seed: int) -> bytes:
        """The state in which a level starts."""
        return _initial_state(self.spec, level_seed)


class UnseenProcgen(ProcgenEngine):
    """The same game with pictures that are cheap to draw, for play that nobody looks at; observations have no rows.

    ProcGen draws a frame at every step, which is most of its work, and a reference such as the uniform floor never
    looks at one. Without backgrounds, with plain colours in place of sprites and with a view into which no cell falls,
    a step takes down to a quarter of the time. Nothing of this touches what happens in a game: the engine reads the
    width of the view only when it draws. `tests/engines/test_unseen.py` compares levels, rewards and ends of episodes.

    Rows of `make bench`: "floor starpilot, steady" and "floor heist, steady".
    """

    def __init__(self, spec: EngineSpec, *, slots: int, levels: LevelSet) -> None:
        plain = {"use_backgrounds": False, "use_monochrome_assets": True}
        super().__init__(spec.game, slots=slots, levels=levels, mode=spec.mode, options=plain)
        self._observations = self._observations[:0]

    def begin(self, slot: int, level_seed: int) -> None:
        self.load(slot, without_view(_initial_state(self.spec, level_seed)))


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> ProcgenEngine:
    """A running engine of `spec`; refuses a specification made with another version of the wheel."""
    PROCGEN.check_version(spec.version, wheel_version())
    return ProcgenEngine(
        spec.game, slots=slots, levels=levels, draw=draw, mode=spec.mode, options=dict(spec.options)
    )
