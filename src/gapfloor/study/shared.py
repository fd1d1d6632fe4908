"""A store that several machines share: a folder they all see, or an object store through fsspec.

On a shared folder tasks work in place. For an address such as `s3://bucket/study` a task works in a folder of its own:
what it needs is brought there first, and what it made is sent back, manifests last, because a cell exists exactly when
its manifest does.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from gapfloor.errors import MissingExtraError, StoreError
from gapfloor.study.graph import Task

#: What each kind of task reads, as patterns below the store.
NEEDS = {
    "train": ("runs/{run}/**",),
    "floor": ("cells/{game}-*",),
    "calibrate": ("classes/*",),
    "evaluate": ("runs/{run}/checkpoint.safetensors", "classes/*", "cells/{game}-*"),
    "replay": ("runs/{game}-*/checkpoint.safetensors", "cells/{game}-*", "classes/*"),
    "analyse": ("cells/*", "classes/*", "runs/*/log.parquet"),
    "report": ("cells/*", "classes/*", "runs/*/*", "replays/*", "results/**"),
}


class SharedStore:
    """A store by path or address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.is_remote = "://" in address

    @contextlib.contextmanager
    def local(self, task: Task) -> Iterator[Path]:
        """A folder in which `task` can work; for an address, fetched before and sent back after."""
        if not self.is_remote:
            yield Path(self.address)
            return
        with tempfile.TemporaryDirectory(prefix="gapfloor-") as folder:
            root = Path(folder)
            before = self.fetch(root, [p.format(run=task.run, game=task.game) for p in NEEDS[task.kind]])
            try:
                yield root
            finally:
                # Also after a failure: whole cells and a run's state to resume from are worth keeping.
                self.send(root, known=before)

    def fetch(self, root: Path, patterns: list[str]) -> dict[str, bytes]:
        """Copy the files that match from the address; returns their contents, so that they need not be sent back."""
        system, base = self._open()
        fetched: dict[str, bytes] = {}
        for pattern in patterns:
            for path in system.glob(f"{base}/{pattern}"):
                if system.isdir(path):
                    continue
                relative = str(PurePosixPath(path).relative_to(base))
                data = system.cat_file(path)
                (root / relative).parent.mkdir(parents=True, exist_ok=True)
                (root / relative).write_bytes(data)
                fetched[relative] = data
        return fetched

    def send(self, root: Path, *, known: dict[str, bytes]) -> None:
        """Copy back every file that is new or changed, manifests last."""
        system, base = self._open()
        paths = [path for path in root.rglob("*") if path.is_file()]
        for path in sorted(paths, key=lambda path: (path.suffix == ".json", str(path))):
            relative = path.relative_to(root).as_posix()
            data = path.read_bytes()
            if known.get(relative) != data:
                system.makedirs(f"{base}/{PurePosixPath(relative).parent}", exist_ok=True)
                system.pipe_file(f"{base}/{relative}", data)

    def _open(self) -> tuple[Any, str]:
        try:
            import fsspec
        except ImportError:
            raise MissingExtraError(
                f'The store {self.address} is an address, which needs fsspec: pip install "gapfloor[remote]".'
            ) from None
        try:
            system, base = fsspec.core.url_to_fs(self.address)
        except (ValueError, ImportError) as error:
            raise StoreError(f"The store {self.address} cannot be opened: {error}") from None
        return system, str(base).rstrip("/")
