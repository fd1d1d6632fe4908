"""Checks of a stored cell: against its own specification, and against what playing it again gives.

Labels, rows and sums must follow from the specification, for which no engine is needed; `Store.cells` has checked the
hashes, and that the key is that of the specification. Returns can be checked one episode at a time (`play.replay`). A
record holds sums and means over all episodes of its cell, so the whole cell is played again; its numbers must then be
the recorded ones to the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gapfloor.calibration.probe import ProbeSettings
from gapfloor.errors import GapfloorError
from gapfloor.levels import LevelSet
from gapfloor.play.cell import CellSpec, design_from
from gapfloor.play.group import CellGroup, finished_record, play_group
from gapfloor.play.player import CellPlay
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import StoredCell, read_episodes


def cell_problems(cell: StoredCell) -> list[str]:
    """What does not fit in a cell, as ends of sentences; empty for a cell that gapfloor can have written."""
    try:
        return list(_problems(cell))
    except (GapfloorError, KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"its specification or its episodes cannot be read ({type(error).__name__}: {error})"]


def _problems(cell: StoredCell) -> Iterator[str]:
    content, labels, record = cell.manifest.content, cell.manifest.labels, cell.manifest.record
    if not cell.path.stem.endswith(f"-{cell.manifest.key[:16]}"):
        yield "the file is not named after the key"
    told = {name: content[name] for name in ("game", "mode", "level_set", "draw")}
    told["rule"] = labels["reference"] or content["rule"]
    for name, value in told.items():
        if labels[name] != value:
            yield f"it is labelled {name} {labels[name]}, but its specification says {value}"
    rows = read_episodes(cell.path)
    for name, value in labels.items():
        found = rows.column(name).unique().to_pylist()
        if found != [value]:
            yield f"its episodes are labelled {name} {found[:3]}, not {value}"
    if content["episodes"] != rows.num_rows:
        yield f"it has {rows.num_rows} episodes, not {content['episodes']}"
        return
    schedule = design_from(content).schedule(LevelSet.parse(content["levels"]), content["draw"])
    for name in ("slot", "index", "level_seed"):
        if not np.array_equal(rows.column(name).to_numpy(), getattr(schedule, name)):
            yield f"the column {name} is not that of the schedule"
    steps = int(rows.column("length").to_numpy().sum())
    counted = record["n_steps"] if record["action_counts"] is None else sum(record["action_counts"])
    if not steps == record["n_steps"] == counted:
        yield "its number of steps is not the sum of its episodes' lengths"


def play_record(
    spec: CellSpec, source: PolicySource | None, *, probe: ProbeSettings | None
) -> tuple[CellPlay, dict[str, Any]]:
    """The whole cell played again, and the record that its episodes give."""
    group = CellGroup(spec.engine, (spec,), source, probe)
    (piece,) = play_group(group, iter([[(spec, None)]]))
    play = CellPlay(spec, outcomes=dict(piece.outcomes))
    return play, finished_record(play, piece)


def record_differences(recorded: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a record that are not what was computed again, as ends of sentences."""
    for name in sorted({*recorded, *again}):
        if recorded.get(name) != again.get(name):
            yield f"it records {name} {_shown(recorded.get(name))}, but playing it again gave {_shown(again.get(name))}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
