"""A cell's manifest: its specification, its record and the hash of its episode file.

The manifest is written after the episodes, so a cell exists exactly when its manifest does; it carries a
hash of itself, so that a changed or cut file is noticed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT = 1


@dataclass(frozen=True)
class Manifest:
    """What is known about a stored cell."""

    key: str
    content: dict[str, Any]
    """Everything that the key is made of."""
    labels: dict[str, Any]
    record: dict[str, Any]
    episodes_sha256: str

    def to_bytes(self) -> bytes:
        """The manifest's file."""
        body = {
            "format": FORMAT,
            "key": self.key,
            "content": self.content,
            "labels": self.labels,
            "record": self.record,
            "episodes_sha256": self.episodes_sha256,
        }
        signed = {**body, "sha256": _digest(body)}
        return (json.dumps(signed, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


def read_manifest(path: Path) -> Manifest | None:
    """The manifest in `path`, or None if it is cut, altered or of another format."""
    try:
        signed = json.loads(path.read_bytes())
        claimed = signed.pop("sha256")
        if signed.get("format") != FORMAT or claimed != _digest(signed):
            return None
        return Manifest(
            signed["key"], signed["content"], signed["labels"], signed["record"], signed["episodes_sha256"]
        )
    except (ValueError, KeyError, AttributeError, TypeError):
        return None


def _digest(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
