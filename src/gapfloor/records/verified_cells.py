"""An index of the cells that were found whole, so that a task of a large study need not read all of them again.

An entry counts while size, time of change and inode of both files of its cell are what they were before the cell was
checked. The index is written whole or not at all and carries a hash of itself; a damaged or lost one is made again. It
is a help, not a result: `gapfloor verify` and `gapfloor analyse` read every cell.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from gapfloor.errors import GapfloorError
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.records.manifest import Manifest, is_well_formed

#: Fewer new cells than this, or than a twentieth of the index, are checked again rather than written down.
_WORTH_WRITING = 64


class VerifiedCells:
    """The index of one store."""

    def __init__(self, root: Path) -> None:
        self._path = root / "log" / "verified-cells.json"
        self._entries: dict[str, Any] = _read(self._path)
        self._new = 0

    def stamps(self, manifest: Path, episodes: Path) -> list[list[int]] | None:
        """What the index knows a cell's files by; None where one of them is not there."""
        try:
            return [
                [found.st_size, found.st_mtime_ns, found.st_ino]
                for found in map(os.stat, (manifest, episodes))
            ]
        except OSError:
            return None

    def manifest(self, name: str, stamps: list[list[int]] | None) -> Manifest | None:
        """The manifest of a cell whose files have not changed since it was checked."""
        try:
            entry = self._entries[name]
            if stamps is None or entry["files"] != stamps:
                return None
            manifest = Manifest(**entry["manifest"])
            return manifest if is_well_formed(manifest) else None
        except (KeyError, TypeError, AttributeError):
            return None

    def add(self, name: str, stamps: list[list[int]] | None, manifest: Manifest) -> None:
        """Note a cell that was checked; its stamps were taken before."""
        if stamps is not None:
            self._entries[name] = {"files": stamps, "manifest": vars(manifest)}
            self._new += 1

    def save(self) -> None:
        """Write the index if it has become much longer. A store that cannot be written to is read without one."""
        if self._new < max(_WORTH_WRITING, len(self._entries) // 20):
            return
        body = json.dumps(self._entries, separators=(",", ":")).encode()
        with contextlib.suppress(OSError, GapfloorError):
            write_bytes_atomically(self._path, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def _read(path: Path) -> dict[str, Any]:
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return {}
        entries = json.loads(body)
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}
