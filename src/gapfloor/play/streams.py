"""The random stream of one episode's actions.

Each episode has a stream of its own, keyed by everything that names it. No two policies, rules, level sets,
draws or references share one, an episode can be replayed alone, and it does not matter which worker plays
it or what else is played.
"""

from __future__ import annotations

import hashlib

import numpy as np

from gapfloor.play.cell import CellSpec
from gapfloor.records.manifest import canonical_json

#: Uniform numbers taken from a stream at a time; most ProcGen episodes need fewer than this.
CHUNK = 1024


def cell_stream_name(cell: CellSpec) -> str:
    """The part of a stream's name that all episodes of a cell share."""
    return canonical_json(
        [
            "action",
            cell.engine.engine,
            cell.engine.game,
            cell.engine.mode,
            cell.policy,
            cell.rule,
            str(cell.levels),
            # A census shares no stream with a draw that happens to have the same slot and index.
            "census" if cell.design.is_census else cell.draw,
        ]
    )


def episode_stream(cell_name: str, *, slot: int, index: int) -> np.random.Generator:
    """The generator of one episode's uniform numbers."""
    digest = hashlib.sha256(f"{cell_name}/{slot}/{index}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
