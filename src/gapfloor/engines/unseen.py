"""The same game with pictures that are cheap to draw, for play that nobody looks at.

ProcGen draws a frame at every step, which is most of its work, and a reference such as the uniform floor never looks at
one. Here episodes are played without backgrounds, with plain colours in place of sprites, and with a view into which no
cell falls: a step takes down to a quarter of the time. Nothing of this touches what happens in a game: the engine reads
the width of the view only when it draws. `tests/engines/test_unseen.py` compares levels, rewards and ends of episodes.

Rows of `make bench`: "floor starpilot, steady" and "floor heist, steady".
"""

from __future__ import annotations

import struct

from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.engine import Engine, EngineSpec
from gapfloor.engines.procgen import ProcgenEngine, check_version
from gapfloor.engines.procgen_state import find_offsets
from gapfloor.engines.registry import engine_from_spec
from gapfloor.levels import LevelSet

#: A view from right to left has no cells, and at this width the agent itself is smaller than a pixel.
_NO_CELLS = -float(2**22)


def unseen_engine(spec: EngineSpec, *, slots: int, levels: LevelSet) -> Engine:
    """An engine for play without an observer; that of the recipe itself where no faster one is known."""
    if spec.engine != PROCGEN.name or spec.options:
        return engine_from_spec(spec, slots=slots, levels=levels)
    check_version(spec)
    return UnseenProcgen(spec, slots=slots, levels=levels)


class UnseenProcgen(ProcgenEngine):
    """A batch of ProcGen slots whose observations have no rows."""

    def __init__(self, spec: EngineSpec, *, slots: int, levels: LevelSet) -> None:
        plain = {"use_backgrounds": False, "use_monochrome_assets": True}
        super().__init__(spec.game, slots=slots, levels=levels, mode=spec.mode, options=plain)
        self._observations = self._observations[:0]

    def begin(self, slot: int, level_seed: int) -> None:
        self.load(slot, _without_cells(self.initial_state(level_seed)))


def _without_cells(state: bytes) -> bytes:
    """The state with a view into which no cell falls; some games set their own view again, and draw as before."""
    offsets = find_offsets(state)
    changed = bytearray(state)
    struct.pack_into("<i", changed, offsets.center_agent, 1)  # only then is the width that of the state
    struct.pack_into("<f", changed, offsets.visibility, _NO_CELLS)
    return bytes(changed)
