"""Results as files: one JSON document, and one CSV file per table for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from gapfloor.analysis.results import AnalysisResults
from gapfloor.records.atomic import write_text_atomically

#: The tables that are also written as CSV.
TABLES = (
    "floors",
    "floor_comparisons",
    "agent_floor_comparisons",
    "gaps",
    "pairs",
    "encoders",
    "agents",
    "screen",
    "normalised",
    "problems",
)


def write_results(results: AnalysisResults, folder: Path) -> None:
    """Write `results.json` and the CSV tables; the JSON comes last, so that where it exists the rest does too."""
    document = results.to_dict()
    for name in TABLES:
        if document[name]:
            write_text_atomically(folder / f"{name}.csv", to_csv(document[name]))
    write_text_atomically(folder / "results.json", json.dumps(document, indent=1, allow_nan=False) + "\n")


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV: nested values become columns named parent.child, intervals two columns."""
    flat = [_flatten(row) for row in rows]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(flat[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return buffer.getvalue()


def _flatten(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= _flatten(value, f"{name}.")
        elif isinstance(value, list) and len(value) == 2 and not any(isinstance(v, dict) for v in value):
            flat[f"{name}.low"], flat[f"{name}.high"] = value
        elif isinstance(value, list):
            flat[name] = json.dumps(value)
        else:
            flat[name] = value
    return flat
