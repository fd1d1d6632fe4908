"""Files that stand next to results or come from other tools, and what reads them.

Logs and notes of a store, training logs, tables of other libraries, baselines and registries of the
audit, settings of a scanned repository. Files with a hash of their own are also damaged as a forger would, with the
hash made again: bytes alone never get past it.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import small_stores
from fuzz.input_files import ROOT, InputKind, forge_table
from fuzz.mutations import mutant, mutate_json, mutate_safetensors
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.foreign_formats import read_labelled
from gapfloor.analysis.table_options import TableOptions
from gapfloor.audit.judgement.findings import SCHEMA as BASELINE
from gapfloor.audit.judgement.findings import read_baseline
from gapfloor.audit.ledger.registry import load_registry
from gapfloor.audit.scan import scan
from gapfloor.plan.lock import load_plan
from gapfloor.play.arithmetic import hosts_of
from gapfloor.records.cell_times import cell_times, note_cell_time
from gapfloor.records.run_identity import read_run_identity
from gapfloor.records.store import Store
from gapfloor.report.cka_input import read_cka
from gapfloor.report.figure_data import read_curves
from gapfloor.report.provenance import read_checkpoint_header, read_hyperparameters
from gapfloor.training.checkpoint_file import hash_header
from gapfloor.training.history import read_in_loop

_LABELS = "game=coinrun,rule=greedy,level_set=test"
_MATRIX_LABELS = {"rule": "greedy", "level_set": "test"}


def write_side_files(folder: Path, checkpoint: Path) -> None:
    """Write the file of every kind below `folder`, which has the small store already."""
    store = Store(folder / "small")
    log, run = store.root / "log", store.root / "runs" / "a"
    entry = {"files": [], "manifest": vars(store.cells()[0].manifest)}
    index = json.dumps({"cell": entry}).encode()
    (log / "verified-cells.json").write_bytes(hashlib.sha256(index).hexdigest().encode() + b"\n" + index)
    (log / "cells").rename(log / "others")
    note_cell_time(store.root, "cell")
    next((log / "cells").iterdir()).rename(log / "cells" / "times.jsonl")
    (log / "arithmetic").mkdir()
    (log / "arithmetic" / "0a-there.json").write_text('{"host": "there"}')
    run.mkdir(parents=True)
    shutil.copy(checkpoint, run / "checkpoint.safetensors")
    labels = {"game": "coinrun", "mode": "easy", "budget": "8M", "agent": "impala"}
    numbers = {
        "steps": [64, 128],
        "entropy_nats": [2.5, 2.0],
        "in_loop_return": [0.0, 1.0],
        "n_episodes": [1, 2],
    }
    pq.write_table(
        pa.table({name: [value] * 2 for name, value in labels.items()} | numbers), run / "log.parquet"
    )
    (folder / "monitor.csv").write_text('#{"t_start": 1.0}\nr,l,t\n1.0,20,0.5\n3.0,30,0.9\n')
    np.savez(
        folder / "evaluations.npz",
        timesteps=np.arange(2),
        results=np.ones((2, 3)),
        ep_lengths=np.ones((2, 3)),
    )
    np.savez(folder / "matrices.npz", impala=np.ones((2, 3)), fpn=np.zeros((2, 3)))
    rows = small_stores.small_rows(episodes=2, games=("coinrun",))
    (folder / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "cka").mkdir()
    (folder / "cka" / "a.json").write_text(
        json.dumps({"game": "coinrun", "agent": "impala", "seed": 1, "as_computed": 0.5, "A": 0.4, "n": 64})
    )
    (folder / "baseline.json").write_text(_baseline())
    (folder / "registry.json").write_text(_registry())
    for name in ("yaml", "toml", "json"):
        _write_repository(folder / f"scanned-{name}", folder / "evaluate.py")
    (folder / "scanned-yaml" / "ppo.yaml").write_text(
        "eval:\n  deterministic: true\n  seeds: [1, 2]\nlevels: 200\n"
    )
    (folder / "scanned-toml" / "ppo.toml").write_text(
        "levels = 200\n[eval]\ndeterministic = true\nseeds = [1, 2]\n"
    )
    (folder / "scanned-json" / "ppo.json").write_text('{"eval": {"deterministic": true}, "levels": [0, 200]}')


def _baseline() -> str:
    row = {
        "fingerprint": "0a" * 8,
        "script": "evaluate.py",
        "rule": "argmax",
        "provenance": "explicit-call-site",
    }
    return json.dumps({"schema": BASELINE, "accepted": [row]})


def _registry() -> str:
    document = json.loads((ROOT / "src" / "gapfloor" / "audit" / "data" / "registry.json").read_text())
    return json.dumps({**document, "entries": document["entries"][:1]})


def _write_repository(folder: Path, source: Path) -> None:
    folder.mkdir()
    shutil.copy(source, folder / "evaluate.py")


def seal_checkpoint(content: bytes, number: int) -> bytes:
    """A checkpoint with another header, whose hash was made again."""
    damaged = mutate_safetensors(content, random.Random(number))
    length = int.from_bytes(damaged[:8], "little")
    header = json.loads(damaged[8 : 8 + length])
    try:
        own = json.loads(header["__metadata__"]["gapfloor"])
        sealed = {**own, "header_hash": hash_header(own)}
    except (ValueError, KeyError, TypeError):
        return damaged
    header["__metadata__"]["gapfloor"] = json.dumps(sealed)
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + damaged[8 + length :]


def _seal_lock(content: bytes, number: int) -> bytes:
    """A lock with other values, whose seal was made again."""
    document = json.loads(mutate_json(content, random.Random(number)))
    document.pop("seal", None)
    seal = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return json.dumps({**document, "seal": seal}).encode()


def _seal_index(content: bytes, number: int) -> bytes:
    """An index of cells with other values, whose hash was made again."""
    body = mutant(content.partition(b"\n")[2], number)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _read_index(path: Path) -> None:
    """The index as it is found, and as it would be believed: the stamps of the cell's own files are filled in."""
    root = path.parents[1]
    Store(root).known_cells()
    try:
        entries = json.loads(path.read_bytes().partition(b"\n")[2])
        cell = root / "cells" / "cell.json"
        files = [cell.stat(), cell.with_suffix(".parquet").stat()]
        entries["cell"]["files"] = [[each.st_size, each.st_mtime_ns, each.st_ino] for each in files]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return
    body = json.dumps(entries).encode()
    path.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    Store(root).known_cells()


def _read_run(path: Path) -> None:
    """What a report reads of a run without torch."""
    read_run_identity(path.parent)
    read_checkpoint_header(path)
    read_hyperparameters(path.parents[2])
    read_curves(path.parents[2])


def _read_log(path: Path) -> None:
    read_curves(path.parents[2])
    read_in_loop(path)


def _read_labelled(path: Path) -> Any:
    return read_labelled(None, [f"{_LABELS}:{path}"])


def _scan_folder(path: Path) -> None:
    scan(str(path.parent))


SIDE_KINDS: dict[str, InputKind] = {
    "sealed-lock": InputKind("plan.lock", lambda path: load_plan(path.with_suffix(".toml")), _seal_lock),
    "index": InputKind("small/log/verified-cells.json", _read_index, _seal_index),
    "times": InputKind(
        "small/log/cells/times.jsonl", lambda path: cell_times(path.parents[2], ["cell", "other"])
    ),
    "hosts": InputKind("small/log/arithmetic/0a-there.json", lambda path: hosts_of(path.parents[2], "0a")),
    "run": InputKind("small/runs/a/checkpoint.safetensors", _read_run),
    "training-log": InputKind("small/runs/a/log.parquet", _read_log, forge_table),
    "monitor": InputKind("monitor.csv", _read_labelled),
    "evaluations": InputKind("evaluations.npz", _read_labelled),
    "matrices": InputKind(
        "matrices.npz", lambda path: read_inputs(path, options=TableOptions(labels=_MATRIX_LABELS))
    ),
    "json-lines": InputKind("episodes.jsonl", read_inputs),
    "cka": InputKind("cka/a.json", lambda path: read_cka(path.parent)),
    "baseline": InputKind("baseline.json", read_baseline),
    "registry": InputKind("registry.json", lambda path: load_registry((path,))),
    "yaml": InputKind("scanned-yaml/ppo.yaml", _scan_folder),
    "toml": InputKind("scanned-toml/ppo.toml", _scan_folder),
    "json-settings": InputKind("scanned-json/ppo.json", _scan_folder),
}
