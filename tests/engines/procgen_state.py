"""The objects of a level, read from the engine's saved state: an account of layouts that knows no frames.

The order of fields is that of the engine's own `serialize` functions (grid and entities of its basic game).
"""

import struct

_ENTITY = "<6f4i2i3f6i1f3i6f"


class _Reader:
    def __init__(self, state):
        self.state, self.at = state, 0

    def take(self, layout):
        values = struct.unpack_from(f"<{layout}", self.state, self.at)
        self.at += struct.calcsize(f"<{layout}")
        return values

    def text(self):
        (length,) = self.take("i")
        self.at += length


def objects(state):
    """The grid, and the set of entities with place, speed, size and kind but without themes."""
    reader = _Reader(state)
    reader.take("i")
    reader.text()
    reader.take("17i")  # options, level range
    for _ in range(2):  # random generators
        reader.take("i")
        reader.text()
    reader.take("f9if4i")  # reward, times, level
    _, count = reader.take("2i")
    entities = set()
    for _ in range(count):
        values = struct.unpack_from(_ENTITY, state, reader.at)
        reader.at += struct.calcsize(_ENTITY)
        entities.add(values[:8])
    reader.take("2i2f1f3i3f3f2f3i")  # background, agent's motion
    reader.take("i")
    reader.text()
    reader.take("3i6f")
    width, height, cells = reader.take("3i")
    return width, height, reader.take(f"{cells}i"), frozenset(entities)
