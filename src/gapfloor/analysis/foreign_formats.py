"""Other people's formats: labelled Stable-Baselines3 files in, rliable's score matrices out."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapfloor.analysis.episodes import LABELS, Inputs, read_inputs, tidy
from gapfloor.analysis.results import AnalysisResults
from gapfloor.analysis.table_files import read_table_file
from gapfloor.analysis.table_options import TableOptions, name_value_pairs
from gapfloor.errors import UsageError
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.statistics.conventions import Floats
from gapfloor.statistics.normalised import has_scale, normalised_score

#: Labels that an evaluation file of one run may leave out.
_DEFAULTS = {"mode": "easy", "budget": "", "agent": "", "seed": "", "draw": "0"}


def read_labelled(source: Path | None, specifications: Sequence[str]) -> Inputs:
    """Episodes of labelled SB3 files ("game=heist,rule=greedy,...:file"), after those of `source`."""
    tables = [_as_table(read_inputs(source))] if source is not None else []
    for text in specifications:
        labels, separator, file = text.partition(":")
        if not separator or not file:
            raise UsageError(f"--sb3 {text!r} is not LABELS:FILE: write game=heist,rule=greedy,...:path.")
        given = name_value_pairs([pair for pair in labels.split(",") if pair], "--sb3")
        for name in ("game", "rule", "level_set"):
            if name not in given:
                raise UsageError(f"{file} needs the label '{name}' (for example {name}=...).")
        options = TableOptions(labels={**_DEFAULTS, **given})
        tables.append(_labelled(read_table_file(Path(file), options).table, options.labels, file))
    table = pa.concat_tables(tables, promote_options="default")
    return tidy(table, source="the episodes", unit="row", first=1)


def _labelled(table: pa.Table, labels: Mapping[str, str], source: str) -> pa.Table:
    """The returns of a file (`r` in a monitor file) with these labels."""
    returns = next((table[name] for name in ("episode_return", "r") if name in table.column_names), None)
    if returns is None:
        raise UsageError(f"{source} has no column 'r': it is not a monitor file of Stable-Baselines3.")
    try:
        columns = {name: [value] * table.num_rows for name, value in labels.items()}
        return pa.table({**columns, "episode_return": returns.cast(pa.float64())})
    except pa.ArrowException:
        raise UsageError(f"{source}: the column 'r' holds something that is not a number.") from None


def _as_table(inputs: Inputs) -> pa.Table:
    columns: dict[str, object] = {
        name: np.array(inputs.labels[name][1], dtype=object)[inputs.labels[name][0]]
        for name in LABELS
        if name != "reference"
    }
    return pa.table({**columns, "episode_return": inputs.returns, "level_seed": inputs.level_seed})


def rliable_scores(results: AnalysisResults) -> dict[str, Floats]:
    """Rliable's input: one runs x games matrix of normalised scores per agent, budget, rule and level set.

    Games that have no published scale are left out, and so are runs beyond the smallest number that every game
    has, because the matrix must be full. The names are "agent|budget|rule|level set"; games stand in
    alphabetical order.
    """
    cells: dict[str, dict[str, list[float]]] = {}
    for row in results.gaps:
        if not has_scale(row.game, mode=row.mode):
            continue
        for run in row.runs:
            for level_set, value in (("train", run.train), ("test", run.test)):
                key = f"{run.agent}|{row.budget}|{row.rule}|{level_set}"
                scores = cells.setdefault(key, {}).setdefault(row.game, [])
                scores.append(normalised_score(value, row.game, mode=row.mode))
    matrices = {}
    for key, games in cells.items():
        n = min(len(scores) for scores in games.values())
        matrices[key] = np.array([games[game][:n] for game in sorted(games)]).T
    return matrices


def write_scores(path: Path, scores: Mapping[str, Floats]) -> None:
    """Write score matrices as an .npz file that `numpy.load` opens."""
    buffer = io.BytesIO()
    np.savez(buffer, **scores)
    write_bytes_atomically(path, buffer.getvalue())
