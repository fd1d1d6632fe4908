"""The build of ProcGen in the wheel `procgen-gym` (Python 3.13 and later), which calls the engine through ctypes.

It has the same C++ code as `procgen-mirror`, built elsewhere. Some frames differ between the two builds, so cells
record which one played.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gapfloor.engines.procgen_mirror import STATE_BYTES


class GymBatch:
    """A batch of slots; the engine writes into the arrays itself."""

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

    def observe(self) -> None:
        """Let the engine write the present observations."""
        self._lib.libenv_observe(self._handle)

    def act(self) -> None:
        """Apply `actions` and write what follows."""
        self._lib.libenv_act(self._handle)
        self._lib.libenv_observe(self._handle)

    def save(self, slot: int) -> bytes:
        """The whole state of a slot."""
        size = self._lib.get_state(self._handle, int(slot), self._buffer, STATE_BYTES)
        return ctypes.string_at(self._buffer, size)

    def load(self, slot: int, state: bytes) -> None:
        """Put a slot into a saved state."""
        self._lib.set_state(self._handle, int(slot), state, len(state))

    def close(self) -> None:
        """Free the engine's memory."""
        self._env.close()


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
