"""A store of the paper's shape: its episodes and cell records, with what no table prints made up and marked so.

Invented: checkpoints' hashes, training logs, frames of replays, action classes' use, and everything that
`printed_cka.py` and `tests/paper_shaped.py` say they invent. Nothing here is a measurement.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.report.printed_cka import HYPERPARAMETERS, write_cka

from gapfloor.records.stored_cell import CELLS, EPISODES, LABELS, Manifest, content_key

LEVELS = {"train": "0:200", "test": "1000:1100"}


def write_store(
    root: Path, episodes: pa.Table, cells: pa.Table, *, games: Sequence[str] | None = None
) -> Path:
    """Write the tables as a store's cells; `games` keeps only some of them."""
    folder = root / "cells"
    folder.mkdir(parents=True)
    records = {_key(row): row for row in cells.to_pylist()}
    table = episodes.select(EPISODES.names).cast(EPISODES)
    n = table.num_rows
    # Cells lie one after the other: a new one starts where a label changes.
    columns = [table[name].to_numpy(zero_copy_only=False) for name in LABELS]
    changes = np.zeros(n, dtype=bool)
    for column in columns:
        values = np.where(column == column, column, -1) if column.dtype.kind == "f" else column
        changes[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(np.r_[True, changes[1:]])
    for start, stop in zip(starts, [*starts[1:], n], strict=True):
        part = table.slice(start, stop - start)
        labels = {name: part[name][0].as_py() for name in LABELS}
        if games is None or labels["game"] in games:
            _write_cell(folder, part, labels, records.get(_key(labels), {}))
    return root


def add_surroundings(root: Path) -> None:
    """What lies around the cells: checkpoints, training logs, CKA results, replays of one level."""
    write_cka(root / "results" / "cka")
    for budget in ("8M", "25M"):
        for agent in ("impala", "fpn"):
            for seed in (1, 2, 3):
                write_run(root, "heist", agent, budget, seed)
    for rule, length in (("sampled", 37), ("greedy", 400), ("uniform", 90)):
        write_replay(root, game="heist", rule=rule, level_seed=1007, length=length)


def write_replay(root: Path, *, game: str, rule: str, level_seed: int, length: int) -> None:
    """Invented frames: a square that moves, and under greedy stands still."""
    n_frames = min(length, 240)
    frames = np.zeros((n_frames, 64, 64, 3), dtype=np.uint8)
    frames[:] = (40, 44, 52)
    for at, frame in enumerate(frames):
        x = 4 if rule == "greedy" else at % 56
        frame[28:36, x : x + 8] = (230, 159, 0)
    folder = root / "replays"
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(f"{game}{rule}{level_seed}".encode()).hexdigest()[:16] + "-0-0"
    buffer = io.BytesIO()
    np.savez_compressed(buffer, frames=frames)
    (folder / f"{name}.npz").write_bytes(buffer.getvalue())
    is_floor = rule == "uniform"
    facts = {
        "game": game, "mode": "easy", "budget": "8M", "agent": "" if is_floor else "impala",
        "seed": None if is_floor else 1, "reference": "uniform" if is_floor else "", "rule": rule,
        "level_set": "test", "level_seed": level_seed, "episode_return": 0.0 if rule == "greedy" else 10.0,
        "length": length, "n_frames": n_frames,
    }  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(facts), encoding="utf-8")


def _write_cell(folder: Path, part: pa.Table, labels: dict[str, Any], record: dict[str, Any]) -> None:
    content = {
        "protocol": 1, "engine": "procgen", "engine_version": "0.10.7", "game": labels["game"],
        "mode": labels["mode"], "options": {}, "level_set": labels["level_set"],
        "levels": LEVELS[labels["level_set"]], "draw": labels["draw"], "slots": 16, "burn_in": 1,
        "episodes": part.num_rows,
        "policy": labels["reference"] or _invented_hash(labels), "rule": labels["rule"], "classes": [],
        "batch": 16, "backend": "onnx", "instruction_set": "avx2",
    }  # fmt: skip
    buffer = io.BytesIO()
    pq.write_table(part, buffer, compression="zstd", write_page_checksum=True)
    data = buffer.getvalue()
    kept = {name: record[name] for name in CELLS.names if name in record and name not in LABELS}
    key = content_key(content)
    manifest = Manifest(key, content, labels, kept, hashlib.sha256(data).hexdigest())
    # As Store.write_cell files it, without waiting for the disk once per file.
    (folder / f"{key}.parquet").write_bytes(data)
    (folder / f"{key}.json").write_bytes(manifest.to_bytes())


def write_run(root: Path, game: str, agent: str, budget: str, seed: int, *, blind: bool = False) -> None:
    folder = root / "runs" / f"{game}-easy-{agent}-{budget}-s{seed}"
    folder.mkdir(parents=True)
    values = HYPERPARAMETERS
    header = {
        "format": "gapfloor-checkpoint/1", "game": game, "mode": "easy", "encoder": agent, "seed": seed,
        "budget": budget, "budget_steps": values["total_timesteps"][budget], "blind": blind,
        "steps": values["total_timesteps"][budget],
        "hyperparameters": {
            "environments": values["parallel_envs"][budget], "rollout_length": values["rollout_length"],
            "learning_rate": values["learning_rate"], "discount": values["gamma"],
            "gae_lambda": values["gae_lambda"], "minibatches": values["minibatches"],
            "epochs": values["update_epochs"], "clip": values["clip_coef"],
            "entropy_coefficient": values["ent_coef"], "value_coefficient": values["vf_coef"],
            "max_gradient_norm": values["max_grad_norm"], "rewards": "raw", "micro_batch": 64,
        },
    }  # fmt: skip
    document = json.dumps({"__metadata__": {"gapfloor": json.dumps(header)}}).encode()
    (folder / "checkpoint.safetensors").write_bytes(struct.pack("<Q", len(document)) + document)
    steps = np.linspace(4096, values["total_timesteps"][budget], 300)
    rng = np.random.default_rng(seed)
    end = 2.45 if agent == "impala" else 2.50
    entropy = end + (2.70 - end) * np.exp(-steps / 3e6) + 0.01 * rng.standard_normal(steps.size).cumsum() / 6
    n = steps.size
    log = {
        "run": [folder.name] * n, "game": [game] * n, "mode": ["easy"] * n, "budget": [budget] * n,
        "agent": [agent] * n, "seed": [seed] * n, "steps": steps.astype(int), "entropy_nats": entropy,
    }  # fmt: skip
    pq.write_table(pa.table(log), folder / "log.parquet")


def _key(labels: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(labels[name] for name in LABELS)


def _invented_hash(labels: dict[str, Any]) -> str:
    name = "-".join(str(labels[name]) for name in ("game", "mode", "budget", "agent", "seed"))
    return hashlib.sha256(name.encode()).hexdigest()
