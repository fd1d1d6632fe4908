"""A store as a dataset to publish: one file of episodes, one of cells, and what else a report reads; no weights.

    gapfloor.Store("gapfloor-store").publish("data/mine", plan="plan.toml")

`episodes.parquet` has one row per episode, with its labels, and `cells.parquet` one row per cell: its manifest as it
was signed, and when it was written. Both can be read by any tool. `analyse` and `report` take the folder like a store:
the cells are written to a temporary store again, which is removed when the process ends. A plan that is published with
the data, and its lock, apply where no other plan is named.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gapfloor.errors import StoreError, UsageError
from gapfloor.leftovers import temporary_folder
from gapfloor.records.atomic import write_atomically
from gapfloor.records.store import Store, note_cell_time, times_of_cells
from gapfloor.records.stored_cell import (
    EPISODES,
    MOST_IN_DATASET,
    episode_bytes,
    episode_table,
    parse_manifest_bytes,
)

EPISODE_FILE, CELL_FILE = "episodes.parquet", "cells.parquet"
PLAN_FILE = "plan.toml"
_CELLS = pa.schema(
    [("cell", pa.string()), ("rows", pa.int64()), ("written_at", pa.string()), ("manifest", pa.string())]
)
#: What a report reads of a store besides its cells.
_AROUND = (
    "order.json", "classes/*.json", "replays/*.json", "replays/*.npz", "results/cka/*.json", "leakage/*.json",
    "runs/*/log.parquet",
)  # fmt: skip


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a dataset and not a store."""
    return (folder / EPISODE_FILE).is_file() and (folder / CELL_FILE).is_file()


def dataset_plan(source: object) -> Path | None:
    """The plan that is published with a dataset; None where there is none, and for everything else."""
    if not isinstance(source, str | Path) or not is_dataset(Path(source)):
        return None
    plan = Path(source) / PLAN_FILE
    return plan if plan.is_file() else None


def write_dataset(store: str | Path | Store, out: str | Path, *, plan: str | Path | None = None) -> None:
    """Write the cells of a store, and what else a report reads, to a folder; a plan goes with its lock."""
    opened, target = store if isinstance(store, Store) else Store(store), Path(out)
    opened.check_readable()
    if plan is not None:
        _copy_plan(Path(plan), target)
    cells = opened.cells()
    times = times_of_cells(opened.root)
    rows = {
        "cell": [cell.path.stem for cell in cells],
        "rows": [pq.read_metadata(cell.path).num_rows for cell in cells],
        "written_at": [times.get(cell.path.stem, "") for cell in cells],
        "manifest": [cell.path.with_suffix(".json").read_text(encoding="utf-8") for cell in cells],
    }
    tables = {EPISODE_FILE: episode_table(cells), CELL_FILE: pa.table(rows, schema=_CELLS)}
    for name, table in tables.items():
        # Sorted labels repeat for hundreds of rows, so that they take almost no space.
        settings = {"compression": "zstd", "compression_level": 15, "write_page_checksum": True}
        write_atomically(target / name, functools.partial(pq.write_table, table, **settings))
    for pattern in _AROUND:
        for path in sorted(opened.root.glob(pattern)):
            copy = target / path.relative_to(opened.root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _copy_plan(plan: Path, target: Path) -> None:
    if not plan.is_file():
        raise UsageError(f"The plan {plan} does not exist: name a file that gapfloor plan init made.")
    target.mkdir(parents=True, exist_ok=True)
    for suffix in (".toml", ".lock", ".lock-history"):
        if plan.with_suffix(suffix).is_file():
            shutil.copyfile(plan.with_suffix(suffix), (target / PLAN_FILE).with_suffix(suffix))


def store_of(folder: Path) -> Path:
    """The folder itself, or the temporary store of a dataset; one per process and dataset."""
    if not is_dataset(folder):
        return folder
    found = [(folder / name).stat() for name in (EPISODE_FILE, CELL_FILE)]
    return _temporary_store(folder.resolve(), tuple((each.st_mtime_ns, each.st_size) for each in found))


@functools.cache
def _temporary_store(folder: Path, _state: tuple[tuple[int, int], ...]) -> Path:
    """The store of a dataset whose files have these times and sizes: a changed one is read again."""
    made = temporary_folder("dataset")
    atexit.register(made.cleanup)
    store = Store(made.name)
    try:
        _link_around(folder, store.root)
        cells, episodes = _read(folder / CELL_FILE, _CELLS), _read(folder / EPISODE_FILE, EPISODES)
        _unpack(cells.to_pylist(), episodes, store)
    except (pa.ArrowException, OSError, KeyError, ValueError, OverflowError) as error:
        made.cleanup()
        raise StoreError(
            f"{folder} is not a dataset that can be read ({error}): download it again."
        ) from None
    return store.root


def _link_around(folder: Path, place: Path) -> None:
    """Have the regular files that a report reads in a store too; what else lies in the folder does not matter."""
    for pattern in _AROUND:
        for path in folder.glob(pattern):
            if path.is_file():
                link = place / path.relative_to(folder)
                link.parent.mkdir(parents=True, exist_ok=True)
                try:
                    link.symlink_to(path)
                except OSError:  # Windows allows few users to make links
                    shutil.copyfile(path, link)


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    """The table of a Parquet file, which can declare any number of rows in a few bytes."""
    with pq.ParquetFile(path) as file:
        if file.metadata.num_rows > MOST_IN_DATASET:
            raise ValueError(f"{path.name} has {file.metadata.num_rows:,} rows")
        return file.read(columns=schema.names).select(schema.names).cast(schema)


def _unpack(cells: Sequence[dict[str, object]], episodes: pa.Table, store: Store) -> None:
    store.cells_folder.mkdir(parents=True)
    first = 0
    for row in cells:
        name, count = Path(str(row["cell"])).name, int(str(row["rows"]))
        if count < 1:
            raise ValueError(f"{name} has {count} episodes")
        manifest = parse_manifest_bytes(str(row["manifest"]).encode())
        part = episodes.slice(first, count).combine_chunks()
        first += count
        for label, value in manifest.labels.items():
            if set(part[label].unique().to_pylist()) != {value}:
                raise ValueError(f"the episodes of {name} do not belong to its manifest")
        # Another version of the Parquet library writes the same rows as other bytes.
        data = episode_bytes(part)
        digest = hashlib.sha256(data).hexdigest()
        (store.cells_folder / f"{name}.parquet").write_bytes(data)
        (store.cells_folder / f"{name}.json").write_bytes(
            replace(manifest, episodes_sha256=digest).to_bytes()
        )
        if row["written_at"]:
            note_cell_time(store.root, name, now=datetime.fromisoformat(str(row["written_at"])))
    if first != episodes.num_rows:
        raise ValueError(f"{episodes.num_rows} episodes, where its cells have {first}")
