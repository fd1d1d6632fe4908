"""The two builds of ProcGen's C++ engine: `procgen-mirror` (Python 3.11 and 3.12) and `procgen-gym` (3.13 and later).

Both have the same code, built elsewhere; some frames differ, so cells record which one played. The arguments are
checked in `gapfloor.engines.procgen`, because the C++ code ends the process on bad ones.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.engines.picture_files import picture_folder
from gapfloor.quiet import without_chatter

STATE_BYTES = 2**20


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


class MirrorBatch(_Batch):
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
        self._buffer = self._ffi.new(f"char[{STATE_BYTES}]")
        self.actions = self._env._ac["action"]
        self.observations = self._env._ob["rgb"]
        self.rewards, self.firsts = self._env._rew, self._env._first
        self.levels = self._env._info["level_seed"]

    def save(self, slot: int) -> bytes:
        """The whole state of a slot."""
        return self._saved(self._handle, slot)

    def _saved(self, handle: Any, slot: int) -> bytes:
        size = self._lib.get_state(handle, slot, self._buffer, STATE_BYTES)
        return bytes(self._ffi.buffer(self._buffer, size))


class MirrorLevelStarts(MirrorBatch):
    """The states in which levels start, each from a fresh one-level engine.

    Only the level's number changes between them, so the options are converted once and patched in place: a fifth of
    the time that building the wheel's Python object takes. Row of `make bench`: "floor starpilot".
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(1, **settings)
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


class GymBatch(_Batch):
    """The build of `procgen-gym`, which is called through ctypes."""

    def __init__(self, slots: int, **settings: Any) -> None:
        from procgen_gym.env import ProcgenVecEnv

        self._env = ProcgenVecEnv(num_envs=slots, num_threads=0, **settings)
        library = self._env._clib
        self._lib, self._handle = library._lib, ctypes.c_void_p(library._handle)
        self._buffer = ctypes.create_string_buffer(STATE_BYTES)
        self.actions = library._ac_bufs["action"]
        self.observations = library._ob_bufs["rgb"]
        self.rewards, self.firsts = library._rew_buf, library._first_buf.view(np.bool_)
        self.levels = library._info_bufs["level_seed"]

    def save(self, slot: int) -> bytes:
        """The whole state of a slot."""
        size = self._lib.get_state(self._handle, int(slot), self._buffer, STATE_BYTES)
        return ctypes.string_at(self._buffer, size)


class GymLevelStarts:
    """The states in which levels start, each from a fresh one-level engine."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    def state(self, level_seed: int) -> bytes:
        """The state in which a level starts."""
        batch = GymBatch(1, **{**self._settings, "start_level": level_seed})
        try:
            return batch.save(0)
        finally:
            batch.close()
