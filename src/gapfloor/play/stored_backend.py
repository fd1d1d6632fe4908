"""The backend of a campaign's networks: the one asked for, else the one that filled the store, else the usual one.

A store that was begun in torch stays in torch when ONNX Runtime is installed later: cells of one policy in two backends
would not be comparable to the last bit, and a study would be half one and half the other.
"""

from __future__ import annotations

from gapfloor.policies.backends import BACKENDS, check_backend
from gapfloor.records.manifest import read_manifest
from gapfloor.records.store import Store


def backend_for(store: Store, asked: str | None) -> str | None:
    """The backend that the user or the store names; None where neither does. One that is not installed is refused."""
    backend = asked or recorded_backend(store)
    check_backend(backend)
    return backend


def recorded_backend(store: Store) -> str | None:
    """The backend of the first cell of the store that a network played."""
    for path in sorted(store.cells_folder.glob("*.json")):
        manifest = read_manifest(path)
        backend = manifest.content.get("backend") if manifest is not None else None
        if backend in BACKENDS:
            return str(backend)
    return None
