"""A cell's record computed again: its entropies, action counts and disagreement.

Returns can be checked one episode at a time. A record holds sums and means over all episodes of its cell, so the whole
cell is played again; its numbers must then be the recorded ones to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gapfloor.play.cell import CellSpec
from gapfloor.play.group import CellGroup, finished_record, play_group
from gapfloor.play.observers import CellProbe
from gapfloor.play.player import CellPlay
from gapfloor.policies.load import PolicySource


def play_record(
    spec: CellSpec, source: PolicySource | None, *, probe: CellProbe | None
) -> tuple[CellPlay, dict[str, Any]]:
    """The whole cell played again, and the record that its episodes give."""
    play = CellPlay(spec, None, spec.is_deterministic)
    group = CellGroup(spec.engine, (spec,), source, probe)
    (piece,) = play_group(group, iter([[(spec, None)]]), on_episode=lambda cell, value: None)
    for position, outcome in piece.outcomes.items():
        play.put(position, outcome)
    return play, finished_record(play, piece)


def record_differences(recorded: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a record that are not what was computed again, as ends of sentences."""
    for name in sorted({*recorded, *again}):
        if recorded.get(name) != again.get(name):
            yield f"it records {name} {_shown(recorded.get(name))}, but playing it again gave {_shown(again.get(name))}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
