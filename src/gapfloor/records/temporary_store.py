"""A store that the user named, or one that is deleted after use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from gapfloor.leftovers import temporary_folder
from gapfloor.records.store import Store


@contextlib.contextmanager
def open_store(path: str | Path | None) -> Iterator[Store]:
    """The store at `path`; without a path, a temporary one: its cells are forgotten when the block ends."""
    if path is not None:
        yield Store(path)
        return
    with temporary_folder("store") as folder:
        yield Store(folder)
