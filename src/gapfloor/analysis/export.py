"""Results as files: one JSON document, a CSV file per table, and rliable's score matrices."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.analysis.results import AnalysisResults
from gapfloor.escape import clean_text, escape_csv
from gapfloor.records.atomic import write_bytes_atomically, write_text_atomically
from gapfloor.result_data import flat_row
from gapfloor.statistics.conventions import Floats
from gapfloor.statistics.normalised import has_scale, normalised_score


def write_results(results: AnalysisResults, folder: Path) -> None:
    """Write `results.json` and the CSV tables; the JSON comes last, so that where it exists the rest does too."""
    document = results.to_dict()
    for name in results.row_names:
        if document[name]:
            write_text_atomically(folder / f"{name}.csv", to_csv(document[name]))
    write_text_atomically(folder / "results.json", json.dumps(document, indent=1, allow_nan=False) + "\n")


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV: nested values become columns named parent.child, intervals two columns."""
    flat = [flat_row(row, is_pair=_is_pair) for row in rows]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(flat[0]), lineterminator="\n")
    writer.writeheader()
    for row in flat:
        writer.writerow({key: _csv_value(value) for key, value in row.items()})
    return buffer.getvalue()


def _csv_value(value: Any) -> Any:
    if isinstance(value, str):
        return escape_csv(clean_text(value))
    return json.dumps(value) if isinstance(value, list) else value


def _is_pair(values: list[Any]) -> bool:
    return len(values) == 2 and not any(isinstance(value, dict) for value in values)


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
