"""The store: a folder of cells, each whole or absent, that any number of processes may share.

Each cell is two files in `cells/`: the episodes as Parquet, and a signed manifest. They hold no time, host, path or
duration, so the same measurement gives the same bytes everywhere. Reading a file never runs code from it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from gapfloor.errors import StoreError, explain_disk_errors, shortened
from gapfloor.json_values import DAMAGED
from gapfloor.lazy import LazyMethod
from gapfloor.leftovers import temporary_folder
from gapfloor.records.atomic import (
    is_root,
    remove_leftovers,
    write_bytes_atomically,
    write_text_atomically,
)
from gapfloor.records.stored_cell import (
    EPISODES,
    Manifest,
    ManifestError,
    StoredCell,
    cell_table,
    content_key,
    episode_bytes,
    episode_table,
    is_writable_text,
    parse_manifest,
)
from gapfloor.tables.cells import counted

DEFAULT_STORE = "gapfloor-store"

#: `s3://bucket/x`, also after `Path` has folded the two slashes; a letter and a colon is a drive of Windows.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

#: What makes up a cell's design: cells of other designs, engines or options of one are never compared.
DESIGN_PARTS = ("slots", "burn_in", "episodes", "levels", "repeats", "engine", "engine_version", "options")


def store_folder(place: str | Path) -> Path:
    """The folder that a user names, with `~` filled in; an address and the root of all files are refused."""
    if _ADDRESS.match(str(place)):
        raise StoreError(
            f"The store {place} is an address, and a store is a folder: mount it, and give the folder."
        )
    if not is_writable_text(str(place)):
        raise StoreError(
            f"The store {shortened(str(place))} has a name that is not UTF-8, and libraries cannot open files there: "
            "choose another folder."
        )
    try:
        folder = Path(place).expanduser()
    except RuntimeError:
        raise StoreError(
            f"The store {place} names a home folder that is not known here: write it out."
        ) from None
    if is_root(folder):
        raise StoreError(
            f"The store {shortened(str(place))} is the root folder of this machine: name a folder of its own, e.g. "
            f"{DEFAULT_STORE}."
        )
    return folder


class Store:
    """A folder of runs, cells, classes, results and replays: the way to read what was recorded.

    `episodes()` and `cell_records()` give pyarrow tables (`.to_pandas()` makes data frames of them), and `cells()`
    lists the cells with their manifests. `verify()` plays a sample of the episodes again and compares, `replay()` keeps
    their frames, and `publish(folder)` writes all of it as a dataset.

    Examples:
        >>> import gapfloor, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> floor = gapfloor.floor("maze", draws=0, episodes=16, store=folder, progress=False)
        >>> store = gapfloor.Store(folder)
        >>> store.episodes().num_rows
        32
        >>> sorted(cell.manifest.labels["level_set"] for cell in store.cells())
        ['test', 'train']
    """

    verify = LazyMethod("gapfloor.api.verify:verify")
    replay = LazyMethod("gapfloor.api.replay:replay")
    publish = LazyMethod("gapfloor.records.dataset:write_dataset")

    def __init__(self, root: str | Path) -> None:
        self.root = store_folder(root)
        self.cells_folder = self.root / "cells"
        self.damaged: dict[Path, str] = {}
        """Cells found cut or altered by the last `cells()`, and how; they count as missing."""
        self.found: list[StoredCell] = []
        """The whole cells of the last `cells()`."""
        self._order: dict[str, Any] | None = None

    def __repr__(self) -> str:
        count = len(list(self.cells_folder.glob("*.json")))
        return f"Store({str(self.root)!r}): {counted(count, 'cell')}"

    def refuse_file(self) -> None:
        """Refuse a file in the place of the folder."""
        if self.root.exists() and not self.root.is_dir():
            raise StoreError(f"The store {self.root} is a file, not a folder: choose another --store.")

    def prepare(self) -> None:
        """Make the folder, and clean up after processes that were killed; refuse what cannot be written."""
        self.refuse_file()
        write_text_atomically(self.root / "log" / "README", "Times and hosts; nothing here is a result.\n")
        with explain_disk_errors(self.cells_folder):
            self.cells_folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.root)

    def check_readable(self) -> None:
        """Refuse a store that is not there or cannot be read."""
        if not self.root.is_dir():
            raise StoreError(f"There is no store at {self.root}: run gapfloor floor or evaluate first.")
        try:
            next(iter(self.root.iterdir()), None)
        except PermissionError:
            raise StoreError(f"The store {self.root} cannot be read: check its permissions.") from None

    def cells(self) -> list[StoredCell]:
        """Every whole cell, in the order of file names; cut or altered ones are noted in `damaged`."""
        self.damaged, found = {}, []
        with explain_disk_errors(self.cells_folder):
            paths = sorted(self.cells_folder.glob("*.json"), key=str)  # paths compare slowly
        for path in paths:
            try:
                episodes, manifest = path.with_suffix(".parquet"), parse_manifest(path)
                try:
                    data = episodes.read_bytes() if episodes.is_file() else b""
                except OSError:
                    data = b""
                if hashlib.sha256(data).hexdigest() != manifest.episodes_sha256:
                    raise ManifestError(
                        "the episode file is missing or is not what was hashed when it was written"
                    )
                found.append(StoredCell(episodes, manifest))
            except ManifestError as error:
                self.damaged[path] = str(error)
        self.found = list(found)
        return found

    def cell(self, file_name: str) -> StoredCell:
        """One cell by its file name; only its manifest is checked."""
        path = self.cells_folder / f"{file_name}.json"
        try:
            return StoredCell(path.with_suffix(".parquet"), parse_manifest(path))
        except ManifestError:
            raise StoreError(
                f"The cell {file_name} is not in the store {self.root}: run the command again."
            ) from None

    def write_cell(
        self,
        *,
        file_name: str,
        content: Mapping[str, Any],
        labels: Mapping[str, Any],
        columns: Mapping[str, Any],
        record: Mapping[str, Any],
    ) -> None:
        """File one cell: the episodes first, then the manifest that makes it count."""
        n = len(columns["slot"])
        full = {**{name: [value] * n for name, value in labels.items()}, **columns}
        data = episode_bytes(pa.table({name: full[name] for name in EPISODES.names}, schema=EPISODES))
        manifest = Manifest(
            content_key(content), dict(content), dict(labels), dict(record), hashlib.sha256(data).hexdigest()
        )
        write_bytes_atomically(self.cells_folder / f"{file_name}.parquet", data)
        write_bytes_atomically(self.cells_folder / f"{file_name}.json", manifest.to_bytes())
        note_cell_time(self.root, file_name)

    def episodes(self) -> pa.Table:
        """All episodes that can be compared with each other, as one table (contract 6)."""
        return episode_table(self.comparable_cells())

    def cell_records(self) -> pa.Table:
        """One row per cell: labels, entropies, action counts, device (contract 6)."""
        return cell_table(self.comparable_cells())

    def comparable_cells(self) -> list[StoredCell]:
        """The cells of the one design that this store's runs have; floors of other designs are left out."""
        cells = self.cells()
        designs: dict[str, set[tuple[Any, ...]]] = {}
        for cell in [cell for cell in cells if not cell.is_reference] or cells:
            designs.setdefault(_place(cell), set()).add(_design(cell))
        for place, found in designs.items():
            if len(found) > 1:
                listed = "; ".join(
                    ", ".join(f"{k} {v}" for k, v in design) for design in sorted(found, key=str)
                )
                raise StoreError(
                    f"The store {self.root} holds {place} under {len(found)} designs ({listed}), which cannot be "
                    "compared: keep each design in its own store."
                )
        kept = [cell for cell in cells if _design(cell) in designs.get(_place(cell), set())]
        self._refuse_mixed_arithmetic(kept)
        return sorted(kept, key=self._appearance)

    def _refuse_mixed_arithmetic(self, cells: Sequence[StoredCell]) -> None:
        """Refuse cells of one policy that two kinds of machines computed at the same moment."""
        known: dict[tuple[str, str, Any], str] = {}
        for cell in cells:
            content = cell.manifest.content
            mine = content.get("arithmetic", "")
            other = known.setdefault(
                (content["policy"], cell.manifest.labels["game"], content.get("batch")), mine
            )
            if other != mine:
                raise StoreError(
                    f"The store {self.root} holds cells of one policy that were computed with two kinds of arithmetic "
                    f"({cell.path.stem} is one): delete those of one machine and run the study again."
                )

    def write_order(self, *, games: Sequence[str], agents: Sequence[str]) -> None:
        """Remember in which order a study names its games and agents: tables follow it."""
        text = json.dumps({"games": list(games), "agents": list(agents)}, indent=1) + "\n"
        write_text_atomically(self.root / "order.json", text)

    def _appearance(self, cell: StoredCell) -> tuple[int, int]:
        if self._order is None:
            try:
                found = json.loads((self.root / "order.json").read_bytes())
                self._order = {name: list(map(str, found[name])) for name in ("games", "agents")}
            except DAMAGED:
                self._order = {}
        labels, order = cell.manifest.labels, self._order
        return _rank(labels["game"], order.get("games")), _rank(labels["agent"], order.get("agents"))


@contextlib.contextmanager
def open_store(path: str | Path | None) -> Iterator[Store]:
    """The store at `path`; without a path, a temporary one: its cells are forgotten when the block ends."""
    if path is not None:
        yield Store(path)
        return
    with temporary_folder("store") as folder:
        yield Store(folder)


def _rank(name: str, order: Any) -> int:
    """The place of a name in a study's order; names that it does not have come last, in their own order."""
    return order.index(name) if isinstance(order, list) and name in order else len(order or ())


def _place(cell: StoredCell) -> str:
    labels = cell.manifest.labels
    return f"{labels['game']} {labels['mode']} {labels['level_set']}"


def _design(cell: StoredCell) -> tuple[tuple[str, Any], ...]:
    content = {
        **cell.manifest.content,
        "options": json.dumps(cell.manifest.content.get("options", {}), sort_keys=True),
    }
    return tuple((part, content[part]) for part in DESIGN_PARTS if part in content)


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
