"""Results as files: in a store for `report`, and for people as one JSON document with a CSV file per table.

A store keeps what `analyse` found, and `report` reads it if nothing behind it has changed: `results/rows.json` holds
every row without loss, and a digest of what the analysis read: the episodes and cell records, the plan with its lock
and addenda, and the version of gapfloor.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import gapfloor
from gapfloor.analysis.apply import resolve_plan
from gapfloor.analysis.inputs import Inputs
from gapfloor.analysis.results import AnalysisResults
from gapfloor.errors import GapfloorError
from gapfloor.escape import escape_csv
from gapfloor.json_values import NotThisTypeError, from_exact, to_exact
from gapfloor.plan.lock import counted_by_time
from gapfloor.records.atomic import write_text_atomically
from gapfloor.tables.readable import flat_row

SCHEMA = "gapfloor-rows/6"
_PATH = Path("results") / "rows.json"


def results_digest(inputs: Inputs, plan: Any = None) -> str:
    """The hash of everything that `analyse(inputs, plan)` depends on."""
    digest = hashlib.sha256(f"{SCHEMA} {gapfloor.__version__}".encode())
    locked = resolve_plan(plan)
    # Times of cells matter only by what a lock makes of them: the same study has the same digest whenever it is run.
    counted = counted_by_time(locked, inputs.times) if locked is not None else None
    digest.update(json.dumps(to_exact(counted), sort_keys=True).encode())
    for field in dataclasses.fields(inputs):
        if field.name in ("stored_at", "changed_at"):
            continue
        digest.update(field.name.encode())
        _update(digest, getattr(inputs, field.name))
    return digest.hexdigest()


def keep_results(results: AnalysisResults, store: Path, *, digest: str) -> None:
    """File the rows where that is possible: a store that cannot be written to is analysed again by `report`."""
    document = {"schema": SCHEMA, "inputs": digest, "results": to_exact(results)}
    with contextlib.suppress(OSError, GapfloorError):
        write_text_atomically(store / _PATH, json.dumps(document, allow_nan=False) + "\n")


def read_stored_results(store: Path, *, digest: str) -> AnalysisResults | None:
    """The rows of a store; None where there are none, they cannot be read, or they belong to other inputs."""
    try:
        document = json.loads((store / _PATH).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA or document["inputs"] != digest:
            return None
        return from_exact(AnalysisResults, document["results"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, NotThisTypeError):
        return None


def _update(digest: Any, value: Any) -> None:
    """Feed a value to a hash: arrays and tables by their bytes, containers by their members."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value.combine_chunks())
        digest.update(sink.getvalue())
    elif isinstance(value, dict | frozenset | tuple):
        digest.update(f"{len(value)}:".encode())
        members = value.items() if isinstance(value, dict) else value
        for member in sorted(members) if isinstance(value, frozenset) else members:
            _update(digest, member)
    else:
        digest.update(repr(value).encode())


def write_results(results: AnalysisResults, folder: Path) -> None:
    """Write `results.json` and the CSV tables; the JSON comes last, so that where it exists the rest does too."""
    document = results.to_dict()
    for name in results.row_names:
        if document[name]:
            write_text_atomically(folder / f"{name}.csv", to_csv(document[name]))
    write_text_atomically(folder / "results.json", json.dumps(document, indent=1, allow_nan=False) + "\n")


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV: nested values become columns named parent.child, intervals two columns."""

    def is_pair(values: list[Any]) -> bool:
        return len(values) == 2 and not any(isinstance(value, dict) for value in values)

    flat = [flat_row(row, is_pair=is_pair) for row in rows]
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
