"""Files other than policies that people exchange, and what reads them: episodes, plans, studies, stores, cards, code.

`write_sound_inputs` writes one sound file of each kind. A reader takes the path of a damaged one and returns, or raises
a GapfloorError.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import small_stores
from fuzz.mutations import ODD_VALUES, mutant, mutate_json
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.stored_results import read_stored_results
from gapfloor.api.verify import verify as verify_store
from gapfloor.audit.scan import scan
from gapfloor.calibration.class_files import read_classes
from gapfloor.engines.engine import EngineSpec
from gapfloor.errors import GapfloorError
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import read_leakage
from gapfloor.plan.lock import load_plan
from gapfloor.play.cell_checks import cell_problems
from gapfloor.records.manifest import content_key
from gapfloor.records.store import Store
from gapfloor.records.verification import read_verification
from gapfloor.report.provenance import provenance_of_cells
from gapfloor.report.replays import read_frames, read_replays
from gapfloor.study.graph import build_graph
from gapfloor.study.journal import TaskJournal
from gapfloor.study.model import read_study

ROOT = Path(__file__).parents[2]
OLD = ROOT / "tests" / "data" / "version-0.1"

#: Damages a sound file; the same number gives the same damage.
Damage = Callable[[bytes, int], bytes]


@dataclass(frozen=True)
class InputKind:
    """One kind of file: its name below the folder, what reads it, and how it is damaged."""

    file: str
    read: Callable[[Path], Any]
    damage: Damage = mutant


def write_sound_inputs(folder: Path) -> None:
    """Write the file of every kind below `folder`."""
    shutil.copytree(OLD / "store", folder / "store")
    shutil.copy(OLD / "plan.toml", folder / "alone.toml")
    rows = small_stores.small_rows(episodes=3, games=("coinrun",))
    pq.write_table(pa.Table.from_pylist(rows), folder / "episodes.parquet")
    for name in ("episodes.csv", "plan.toml", "plan.lock"):
        shutil.copy(OLD / name, folder / name)
    study = (ROOT / "studies" / "demo.toml").read_text().replace("../agents", str(ROOT / "agents"))
    (folder / "study.toml").write_text(study)
    shutil.copy(OLD / "scanned-evaluate.txt", folder / "evaluate.py")
    cell = {"cell_type": "code", "source": (folder / "evaluate.py").read_text().splitlines(keepends=True)}
    notebook = {
        "cells": [cell, {"cell_type": "markdown", "source": "text"}],
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    (folder / "evaluate.ipynb").write_text(json.dumps(notebook))
    leaked = small_stores.leaked_levels([5], train=LevelSet(0, 200), test=LevelSet(1000, 1100))
    (folder / "leakage.json").write_text(leaked.to_json())
    _write_store_files(folder)


def _write_store_files(folder: Path) -> None:
    """A small store in which every file but the damaged one is sound."""
    store = Store(folder / "small")
    store.prepare()
    content = {
        "protocol": 2, "engine": "procgen", "engine_version": "0", "game": "coinrun", "mode": "easy",
        "level_set": "train", "draw": 0, "rule": "sampled", "classes": [], "batch": 2, "backend": "torch",
        "backend_version": "2", "device": "cpu", "arithmetic": "0a",
    }  # fmt: skip
    small_stores.write_cell(store, "cell", content=content)
    store.write_order(games=["coinrun"], agents=["impala"])
    verify_store(store.root, episodes=0, whole_cells=0)
    (store.root / "results" / "rows.json").write_text(
        '{"schema": "gapfloor-rows/2", "inputs": "", "results": {}}'
    )
    note = {
        "study": "mine 1", "work": "floor coinrun", "coordinator": "", "host": "there", "place": "x", "process": 1,
        "started": "1", "since": 1.0,
    }  # fmt: skip
    (store.root / "log" / "tasks").mkdir(parents=True)
    (store.root / "log" / "tasks" / "a.running").write_text(json.dumps(note))
    shutil.copytree(folder / "store" / "classes", store.root / "classes")
    frames = np.zeros((3, 8, 8, 3), dtype="uint8")
    (store.root / "replays").mkdir()
    np.savez_compressed(store.root / "replays" / "a.npz", frames=frames)
    facts = {
        **small_stores.LABELS, "level_seed": 3, "episode_return": 1.0, "length": 3, "n_frames": 3, "slot": 0,
        "index": 1, "levels": "0:200",
    }  # fmt: skip
    (store.root / "replays" / "a.json").write_text(json.dumps(facts))


def _forge(content: bytes, number: int) -> bytes:
    """A manifest with other values, hashed again as a forger would."""
    document = json.loads(mutate_json(content, random.Random(number)))
    if isinstance(document.get("content"), dict):
        document["key"] = content_key(_finite(document["content"]))
    document.pop("sha256", None)
    document = _finite(document)
    return json.dumps({**document, "sha256": content_key(document)}).encode()


def _finite(value: Any) -> Any:
    """Numbers that JSON has: a manifest with others cannot be hashed."""
    if isinstance(value, float):
        return value if value - value == 0 else 0.0
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def forge_table(content: bytes, number: int) -> bytes:
    """Episodes with a column of another type, with odd values, or missing."""
    rng = random.Random(number)
    if rng.random() < 0.3:
        return mutant(content, number)
    table = pq.read_table(pa.BufferReader(content))
    at = rng.randrange(table.num_columns)
    name = table.column_names[at]
    made = _odd_column(table.num_rows, rng)
    table = table.remove_column(at) if made is None else table.set_column(at, name, made)
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(table, sink)
    except pa.ArrowException:  # not every type can be written
        return mutant(content, number)
    return bytes(sink.getvalue())


def _odd_column(n: int, rng: random.Random) -> Any:
    values: list[Any] = [rng.choice(ODD_VALUES) for _ in range(n)]
    kind = rng.choice(
        ("float16", "list", "dictionary", "binary", "null", "decimal", "mixed", "bool", "struct", "drop")
    )
    if kind == "drop":
        return None
    if kind == "float16":
        return pa.array([rng.choice((0.0, float("inf"), float("nan"), -1.0)) for _ in range(n)]).cast(
            pa.float16()
        )
    if kind == "list":
        return pa.array([[1, 2]] * n)
    if kind == "dictionary":
        return pa.array([rng.choice(("a", "", None, "x" * 500)) for _ in range(n)]).dictionary_encode()
    if kind == "binary":
        return pa.array([rng.randbytes(4) for _ in range(n)], type=pa.binary())
    if kind == "null":
        return pa.nulls(n)
    if kind == "decimal":
        return pa.array([rng.randrange(10**9) for _ in range(n)]).cast(pa.decimal128(20, 0))
    if kind == "bool":
        return pa.array([rng.random() < 0.5 for _ in range(n)])
    if kind == "struct":
        return pa.array([{"a": 1}] * n)
    numbers = [value for value in values if isinstance(value, float)] or [1e308]
    return pa.array([rng.choice(numbers) for _ in range(n)])


def _read_store(path: Path) -> None:
    """Everything that reads the cells of a store without playing."""
    store = Store(path.parents[1])
    cells = store.cells()
    for read in (store.episodes, store.cell_records, lambda: read_inputs(store.root)):
        _refusing(read)
    _refusing(lambda: provenance_of_cells(cells, root=store.root))
    for cell in cells:
        cell_problems(cell)


def _refusing(read: Callable[[], Any]) -> None:
    """One reader's refusal must not keep the next one from being tried."""
    with contextlib.suppress(GapfloorError):
        read()


def _read_sealed_cell(path: Path) -> None:
    """Episodes whose hash a forger has written into the manifest."""
    manifest = path.with_suffix(".json")
    document = json.loads(manifest.read_bytes())
    document["episodes_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    document.pop("sha256")
    manifest.write_text(json.dumps({**document, "sha256": content_key(document)}))
    _read_store(path)


def _read_study(path: Path) -> None:
    build_graph(read_study(path))


def _scan_alone(path: Path) -> None:
    """A notebook is scanned as a folder's only file."""
    folder = path.parent / "alone"
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / path.name)
    scan(str(folder))


def _read_replays(path: Path) -> None:
    for replay in read_replays(path.parent):
        read_frames(replay.path)


INPUT_KINDS: dict[str, InputKind] = {
    "csv": InputKind("episodes.csv", read_inputs),
    "parquet": InputKind("episodes.parquet", read_inputs, forge_table),
    "plan": InputKind("alone.toml", load_plan),
    "lock": InputKind("plan.lock", lambda path: load_plan(path.with_suffix(".toml"))),
    "study": InputKind("study.toml", _read_study),
    "manifest": InputKind("small/cells/cell.json", _read_store),
    "forged": InputKind("small/cells/cell.json", _read_store, _forge),
    "cell": InputKind("small/cells/cell.parquet", _read_sealed_cell, forge_table),
    "order": InputKind("small/order.json", lambda path: _refusing(Store(path.parent).episodes)),
    "verification": InputKind(
        "small/results/verification.json",
        lambda path: read_verification(path.parents[1], Store(path.parents[1]).cells()),
    ),
    "rows": InputKind(
        "small/results/rows.json", lambda path: read_stored_results(path.parents[1], digest="")
    ),
    "note": InputKind(
        "small/log/tasks/a.running", lambda path: TaskJournal(path.parents[2], study="mine 1").running()
    ),
    "classes": InputKind(
        "small/classes/starpilot-easy.json",
        lambda path: read_classes(path.parents[1], EngineSpec("procgen", "0.10.7", "starpilot", "easy")),
    ),
    "replay": InputKind("small/replays/a.json", _read_replays),
    "frames": InputKind("small/replays/a.npz", _read_replays),
    "leakage": InputKind("leakage.json", read_leakage),
    "source": InputKind("evaluate.py", lambda path: scan(str(path))),
    "notebook": InputKind("evaluate.ipynb", _scan_alone),
}
