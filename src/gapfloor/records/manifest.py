"""A cell's manifest: its specification, its record and the hash of its episode file.

The manifest is written after the episodes, so a cell exists exactly when its manifest does; it carries a
hash of itself, so that a changed or cut file is noticed, and its key must be the hash of its specification.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gapfloor.json_values import DAMAGED, without_repetition
from gapfloor.records.schema import LABELS

FORMAT = 1
_SURROGATE = re.compile("[\ud800-\udfff]")


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
        body = {"format": FORMAT, **vars(self)}
        signed = {**body, "sha256": content_key(body)}
        return (json.dumps(signed, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()


class ManifestError(ValueError):
    """A manifest or its episodes are cut, altered or of another format; the text says how, in words."""


def parse_manifest(path: Path) -> Manifest:
    """The manifest in `path`, whose hash and key must belong to its content; otherwise a `ManifestError`."""
    # A pipe or a folder with a cell's name is not a cell, and reading a pipe would wait for ever.
    return parse_manifest_bytes(path.read_bytes() if path.is_file() else b"")


def parse_manifest_bytes(data: bytes) -> Manifest:
    """The manifest in the bytes of its file, checked as `parse_manifest` does."""
    try:
        signed: Any = json.loads(data, object_pairs_hook=without_repetition)
        claimed = signed.pop("sha256")
        if signed.get("format") != FORMAT or claimed != content_key(signed):
            raise ManifestError("the manifest is not what was hashed when it was written")
        if signed["key"] != content_key(signed["content"]):
            raise ManifestError("the key is not the hash of the specification")
        manifest = Manifest(**{field.name: signed[field.name] for field in fields(Manifest)})
        if not is_well_formed(manifest):
            raise ManifestError("the manifest holds values that gapfloor does not write")
        return manifest
    except ManifestError:
        raise
    except DAMAGED:
        raise ManifestError("the manifest cannot be read") from None


def is_well_formed(manifest: Manifest) -> bool:
    """Whether labels, specification and record have the form in which they are written: readers rely on it."""
    content, labels, record = manifest.content, manifest.labels, manifest.record
    if set(labels) != set(LABELS) or not isinstance(content.get("policy"), str):
        return False
    for name, value in labels.items():
        is_number = isinstance(value, int) and _is_plain(value)
        is_right = is_number if name in ("seed", "draw") else is_writable_text(value)
        if not (is_right or (name == "seed" and value is None)):
            return False
    plain = {name: value for name, value in content.items() if name not in ("options", "classes")}
    values = [*plain.values(), *content.get("options", {}).values(), *content.get("classes", ())]
    return all(map(_is_plain, values)) and all(map(_is_recorded, record.values()))


def _is_recorded(value: Any) -> bool:
    """Whether a record can hold a value: counts of several dimensions are lists of lists."""
    return all(map(_is_recorded, value)) if isinstance(value, list) else _is_plain(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or isinstance(value, float) or is_writable_text(value)


def is_writable_text(value: Any) -> bool:
    """Whether a value is text that can be written: JSON and paths can hold halves of characters (surrogates)."""
    return isinstance(value, str) and (value.isascii() or _SURROGATE.search(value) is None)


def content_key(content: Any) -> str:
    """The hash by which plain JSON values are told apart; a cell's key is that of its specification."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """The one way in which a value is written where bytes must be equal."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
