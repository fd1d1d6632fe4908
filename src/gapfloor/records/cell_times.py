"""When each cell of a store was written: notes in `log/`, which are not results.

A lock that says that no cell had been seen can be compared with them. Cells themselves hold no time, so that the same
cell has the same bytes wherever it is played. Each process appends to a file of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path

from gapfloor.errors import explain_disk_errors
from gapfloor.json_values import DAMAGED


def note_cell_time(root: Path, file_name: str, *, now: datetime | None = None) -> None:
    """Remember that a cell has been written now."""
    path = root / "log" / "cells" / f"{socket.gethostname()[:60]}-{os.getpid()}.jsonl"
    moment = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    with explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as notes:
            notes.write(json.dumps({"cell": file_name, "at": moment}) + "\n")


def times_of_cells(root: Path) -> dict[str, str]:
    """Cell -> when it was first written, as far as the notes know."""
    known: dict[str, str] = {}
    for path in sorted((root / "log" / "cells").glob("*.jsonl")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            for line in path.read_text(encoding="utf-8").splitlines():
                # A process that was killed may have left half a line.
                with contextlib.suppress(*DAMAGED):
                    note = json.loads(line)
                    cell, at = str(note["cell"]), str(note["at"])
                    known[cell] = min(known.get(cell, at), at)
    return known
