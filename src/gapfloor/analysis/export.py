"""Results as files: one JSON document and a CSV file per table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from gapfloor.analysis.results import AnalysisResults
from gapfloor.escape import escape_csv
from gapfloor.records.atomic import write_text_atomically
from gapfloor.tables.readable import flat_row


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
        return escape_csv(value)
    return json.dumps(value) if isinstance(value, list) else value


def _is_pair(values: list[Any]) -> bool:
    return len(values) == 2 and not any(isinstance(value, dict) for value in values)
