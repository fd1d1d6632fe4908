"""Where the fields of a saved state of ProcGen are in its bytes.

The order of fields is that of the `serialize` functions in the engine's C++ code (game.cpp, basic-abstract-game.cpp and
entity.cpp), which both wheels share. Numbers have four bytes; texts have their length first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

#: Numbers of an entity, and the positions of two of them: its age, and the age at which it disappears.
ENTITY_NUMBERS, AGE, LAST_AGE = 31, 18, 19


@dataclass(frozen=True)
class FieldOffsets:
    """Offsets of fields, in bytes from the start of a state."""

    center_agent: int
    """Whether the view follows the agent."""
    generator: tuple[int, int]
    """Begin and end of the game's random generator."""
    timeout: int
    """The step at which an episode ends."""
    time: int
    """Steps since the episode began."""
    entities: tuple[int, int]
    """Where the entities begin, and how many there are."""
    step_random: int
    """The random number of the last step."""
    visibility: int
    """The number of cells from one edge of the view to the other."""


def find_offsets(state: bytes) -> FieldOffsets:
    """The offsets of fields in this state; texts and entities before a field move it."""
    options = _after_text(state, 4)  # the version and the game's name
    generator = _after_text(state, options + 17 * 4 + 4)  # options, range of levels, the generator of levels
    numbers = _after_text(state, generator + 4)
    entities = numbers + 17 * 4
    count = number_at(state, entities - 4)
    after = entities + count * ENTITY_NUMBERS * 4
    view = _after_text(state, after + 19 * 4 + 4)
    return FieldOffsets(
        center_agent=options + 5 * 4,
        generator=(generator, numbers),
        timeout=numbers + 4 * 4,
        time=numbers + 13 * 4,
        entities=(entities, count),
        step_random=after + 18 * 4,
        visibility=view + 7 * 4,
    )


def number_at(state: bytes, offset: int) -> int:
    """The whole number at an offset."""
    number: int = struct.unpack_from("<i", state, offset)[0]
    return number


def _after_text(state: bytes, offset: int) -> int:
    return offset + 4 + number_at(state, offset)
