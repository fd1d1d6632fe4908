"""When a game of ProcGen is in the same position again, so that a player without chance repeats itself from there.

The engine's state never repeats: it counts steps, entities age, and a random number is drawn at every step. In some
games none of this decides what happens. There, a player whose action depends on the frame alone runs through the same
positions again and again until the time is up, and its state can be moved to a later time without playing.

Which games these are was read in the engine's C++ code. In miner and maze no step uses chance or time: the random
number decides whether an object moves first horizontally or vertically, and only where both moves are the same. In
heist it can decide how an agent drifts diagonally without an action, which cannot be part of a loop of one step.
`tests/play/test_loops.py` compares with the plain loop.

Row of `make bench`: "evaluate, miner, greedy".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.procgen_state import AGE, ENTITY_NUMBERS, LAST_AGE, find_offsets, number_at

#: Steps of the longest loop that is known to repeat itself unchanged, by game.
_LONGEST_LOOPS = {"heist": 1, "maze": 1000, "miner": 1000}


@dataclass(frozen=True)
class ProcgenLoops:
    """How saved states of a game are compared, and moved to a later time."""

    longest: int
    """Steps of the longest loop that may be skipped."""

    def position(self, state: bytes) -> bytes:
        """What decides everything that happens in the game, up to the end of its time."""
        offsets = find_offsets(state)
        begin, count = offsets.entities
        entities = np.frombuffer(state, dtype="<i4", count=count * ENTITY_NUMBERS, offset=begin)
        entities = entities.reshape(count, ENTITY_NUMBERS).copy()
        entities[entities[:, LAST_AGE] <= 0, AGE] = 0
        return b"".join(
            (
                state[: offsets.generator[0]],
                state[offsets.generator[1] : offsets.time],
                entities.tobytes(),
                state[begin + entities.nbytes : offsets.step_random],
                state[offsets.step_random + 4 :],
            )
        )

    def steps_left(self, state: bytes) -> int:
        """Steps after which the time is up."""
        offsets = find_offsets(state)
        return number_at(state, offsets.timeout) - number_at(state, offsets.time)

    def later(self, state: bytes, steps: int) -> bytes:
        """The same position after this number of steps."""
        time = find_offsets(state).time
        changed = bytearray(state)
        struct.pack_into("<i", changed, time, number_at(state, time) + steps)
        return bytes(changed)


def loops_of(spec: EngineSpec) -> ProcgenLoops | None:
    """How loops of a game are found; None where chance or time decide what happens, or where this is not known."""
    longest = _LONGEST_LOOPS.get(spec.game) if spec.engine == PROCGEN.name else None
    return None if longest is None else ProcgenLoops(longest)
