"""Comparing the files of two folders byte by byte."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path


def file_hashes(folder: Path, *, without: Collection[str] = ()) -> dict[str, str]:
    """The SHA-256 of every file below `folder` by relative path.

    `without` names folders and files to leave out, at any depth (e.g. `log`, which records times).
    """
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    named = [(path.relative_to(folder), path) for path in paths]
    return {
        str(name): hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in named
        if not set(name.parts) & set(without)
    }
