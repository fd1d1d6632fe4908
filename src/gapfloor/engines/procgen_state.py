"""Saved states of ProcGen: where their fields are, states that are never drawn, and positions that come back.

The order of fields is that of the `serialize` functions in the engine's C++ code (game.cpp, basic-abstract-game.cpp and
entity.cpp), which both wheels share. Numbers have four bytes; texts have their length first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import PROCGEN, EngineSpec

#: Numbers of an entity, and the positions of two of them: its age, and the age at which it disappears.
ENTITY_NUMBERS, AGE, LAST_AGE = 31, 18, 19

#: Steps of the longest loop that is known to repeat itself unchanged, by game.
_LONGEST_LOOPS = {"heist": 1, "maze": 1000, "miner": 1000}

#: A view from right to left has no cells, and at this width the agent itself is smaller than a pixel.
_NO_CELLS = -float(2**22)


class ProcgenState:
    """A saved state of a slot, and where its fields begin, in bytes; texts and entities before a field move it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        options = self._after_text(4)  # the version and the game's name
        generator = self._after_text(
            options + 17 * 4 + 4
        )  # options, range of levels, the generator of levels
        numbers = self._after_text(generator + 4)
        self.center_agent = options + 5 * 4
        """Whether the view follows the agent."""
        self.generator = slice(generator, numbers)
        """The game's random generator."""
        self.timeout, self.time = numbers + 4 * 4, numbers + 13 * 4
        """The step at which an episode ends, and steps since it began."""
        self.entities = numbers + 17 * 4
        self.n_entities = self.number(self.entities - 4)
        after = self.entities + self.n_entities * ENTITY_NUMBERS * 4
        self.step_random = after + 18 * 4
        """The random number of the last step."""
        self.visibility = self._after_text(after + 19 * 4 + 4) + 7 * 4
        """The number of cells from one edge of the view to the other."""

    def number(self, offset: int) -> int:
        """The number at a place."""
        number: int = struct.unpack_from("<i", self.content, offset)[0]
        return number

    def _after_text(self, offset: int) -> int:
        return offset + 4 + self.number(offset)


def without_view(state: bytes) -> bytes:
    """The state with a view into which no cell falls; some games set their own view again, and draw as before."""
    fields, changed = ProcgenState(state), bytearray(state)
    struct.pack_into("<i", changed, fields.center_agent, 1)  # only then is the width that of the state
    struct.pack_into("<f", changed, fields.visibility, _NO_CELLS)
    return bytes(changed)


@dataclass(frozen=True)
class ProcgenLoops:
    """How saved states of a game are compared, and moved to a later time.

    The engine's state never repeats: it counts steps, entities age, and a random number is drawn at every step. In some
    games none of this decides what happens. There, a player whose action depends on the frame alone runs through the
    same positions again and again until the time is up, and its state can be moved to a later time without playing.

    Which games these are was read in the engine's C++ code. In miner and maze no step uses chance or time: the random
    number decides whether an object moves first horizontally or vertically, and only where both moves are the same. In
    heist it can decide how an agent drifts diagonally without an action, which cannot be part of a loop of one step.
    `tests/play/test_loops.py` compares with the plain loop. Row of `make bench`: "evaluate, miner, greedy".
    """

    longest: int
    """Steps of the longest loop that may be skipped."""

    def position(self, state: bytes) -> bytes:
        """What decides everything that happens in the game, up to the end of its time."""
        fields = ProcgenState(state)
        n_numbers = fields.n_entities * ENTITY_NUMBERS
        entities = np.frombuffer(state, dtype="<i4", count=n_numbers, offset=fields.entities)
        entities = entities.reshape(-1, ENTITY_NUMBERS).copy()
        entities[entities[:, LAST_AGE] <= 0, AGE] = 0
        return b"".join(
            (
                state[: fields.generator.start],
                state[fields.generator.stop : fields.time],
                entities.tobytes(),
                state[fields.entities + entities.nbytes : fields.step_random],
                state[fields.step_random + 4 :],
            )
        )

    def steps_left(self, state: bytes) -> int:
        """Steps after which the time is up."""
        fields = ProcgenState(state)
        return fields.number(fields.timeout) - fields.number(fields.time)

    def later(self, state: bytes, steps: int) -> bytes:
        """The same position after this number of steps."""
        fields, changed = ProcgenState(state), bytearray(state)
        struct.pack_into("<i", changed, fields.time, fields.number(fields.time) + steps)
        return bytes(changed)


def loops_of(spec: EngineSpec) -> ProcgenLoops | None:
    """How loops of a game are found; None where chance or time decide what happens, or where this is not known."""
    longest = _LONGEST_LOOPS.get(spec.game) if spec.engine == PROCGEN.name else None
    return None if longest is None else ProcgenLoops(longest)


#: The step at which the first mark is set, and none.
_FIRST_STEP = 8
_NEVER = np.iinfo(np.int64).max

#: Positions that are compared with one mark: where a frame does not show everything, few of them are the same.
_MOST_TRIES = 4


@dataclass(frozen=True)
class LoopMark:
    """A slot at one step of its episode, before the action."""

    step: int
    position: bytes
    episode_return: float
    action_counts: npt.NDArray[np.int64]
    disagreements: int


class LoopFinder:
    """Marks of a batch of slots, and when to look at a slot again.

    An agent under argmax often walks into a wall, or back and forth, until its time is up. Saving a state costs as much
    as a few steps, so states are saved at steps 8, 16, 32 and so on (Brent's algorithm for cycles), and a later state
    is compared with the last of them only where the policy's entropy is the same as there. Row of `make bench`:
    greedy-miner, in which 128 episodes took 3.9 processor seconds without this, and 0.4 with it.
    """

    def __init__(self, n_slots: int) -> None:
        self._marks: list[LoopMark | None] = [None] * n_slots
        self._next_mark = np.full(n_slots, _NEVER)
        self._entropies = np.full(n_slots, np.nan)
        """Those at the marks; not a number where nothing is compared."""
        self._tries = [0] * n_slots

    def begin(self, row: int, *, is_deterministic: bool) -> None:
        """Start with a new episode; those with chance in them are left alone."""
        self._marks[row] = None
        self._next_mark[row] = _FIRST_STEP if is_deterministic else _NEVER
        self._entropies[row] = np.nan

    def due(self, steps: npt.NDArray[np.int64], entropies: npt.NDArray[np.float64]) -> list[int]:
        """The rows whose position is wanted: for a mark, or to be compared with one."""
        wanted = (entropies == self._entropies) | (steps == self._next_mark)
        rows: list[int] = np.flatnonzero(wanted).tolist()
        return rows

    def found(self, row: int, now: LoopMark, entropy: float) -> LoopMark | None:
        """The mark from which `now` is a repetition; otherwise `now` may become the row's mark."""
        mark = self._marks[row]
        if mark is not None and mark.position == now.position and mark.episode_return == now.episode_return:
            self.begin(row, is_deterministic=False)
            return mark
        self._tries[row] -= 1
        if now.step == self._next_mark[row]:
            self._marks[row], self._tries[row] = now, _MOST_TRIES
            self._next_mark[row] = 2 * now.step
            self._entropies[row] = entropy
        elif self._tries[row] == 0:
            self._entropies[row] = np.nan
        return None
