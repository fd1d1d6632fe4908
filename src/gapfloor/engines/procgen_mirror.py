"""The build of ProcGen in the wheel `procgen-mirror` (Python 3.11 and 3.12), which calls the engine through cffi.

The arguments are checked in `gapfloor.engines.procgen`, because the C++ code ends the process on bad ones.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

from gapfloor.engines.picture_files import picture_folder

STATE_BYTES = 2**20


def _load_wheel() -> Any:
    # gym, which the wheel imports, prints a notice about itself to standard error, which users do not need.
    with contextlib.redirect_stderr(io.StringIO()):
        from procgen.env import ProcgenGym3Env
    return ProcgenGym3Env


class MirrorBatch:
    """A batch of slots; the engine writes into the arrays itself."""

    def __init__(self, slots: int, **settings: Any) -> None:
        wheel = _load_wheel()
        with picture_folder(
            Path(sys.modules[wheel.__module__].__file__ or "").parent / "data" / "assets"
        ) as pictures:
            self._env = wheel(num=slots, num_threads=0, resource_root=f"{pictures}{os.sep}", **settings)
        # The wheel looks this function up when an engine is freed, under a lock that making an engine holds. Should the
        # garbage collector free one in that very moment, the process would wait for itself for ever: look it up now.
        _ = self._env._c_lib.libenv_close
        self._ffi, self._lib, self._handle = self._env._ffi, self._env._c_lib, self._env._c_env
        self._buffer = self._ffi.new(f"char[{STATE_BYTES}]")
        self.actions = self._env._ac["action"]
        self.observations = self._env._ob["rgb"]
        self.rewards, self.firsts = self._env._rew, self._env._first
        self.levels = self._env._info["level_seed"]

    def observe(self) -> None:
        """Let the engine write the present observations."""
        self._lib.libenv_observe(self._handle)

    def act(self) -> None:
        """Apply `actions` and write what follows."""
        self._lib.libenv_act(self._handle)
        self._lib.libenv_observe(self._handle)

    def save(self, slot: int) -> bytes:
        """The whole state of a slot."""
        size = self._lib.get_state(self._handle, slot, self._buffer, STATE_BYTES)
        state: bytes = self._ffi.buffer(self._buffer, size)[:]
        return state

    def load(self, slot: int, state: bytes) -> None:
        """Put a slot into a saved state."""
        self._lib.set_state(self._handle, slot, state, len(state))

    def close(self) -> None:
        """Free the engine's memory."""
        self._env.close()


class MirrorLevelStarts:
    """The states in which levels start, each from a fresh one-level engine.

    Only the level's number changes between them, so the options are converted once and patched in place: a fifth of
    the time that building the wheel's Python object takes. Row of `make bench`: "floor starpilot".
    """

    def __init__(self, **settings: Any) -> None:
        batch = MirrorBatch(1, **settings)
        self._env, self._ffi, self._lib = batch._env, batch._ffi, batch._lib
        self._buffer = batch._buffer
        self._options, self._kept = self._env._convert_options(self._ffi, self._lib, self._env._options)
        self._start_level = self._kept[list(self._env._options).index("start_level")]

    def state(self, level_seed: int) -> bytes:
        """The state in which a level starts."""
        self._start_level[0] = level_seed
        handle = self._lib.libenv_make(1, self._options[0])
        self._lib.libenv_set_buffers(handle, self._env._c_buffers)
        size = self._lib.get_state(handle, 0, self._buffer, STATE_BYTES)
        state = bytes(self._ffi.buffer(self._buffer, size))
        self._lib.libenv_close(handle)
        return state
