"""`measure_cka`: CKA records of checkpoints, as the report reads them, stored below `results/cka` of a store.

There is one file per checkpoint. A file that was made from the same contents with the same settings is not made again.
It holds no time, host or path.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import game_of_file, make_spec
from gapfloor.errors import PolicyError, UsageError
from gapfloor.levels import LevelSet, check_disjoint
from gapfloor.machine import one_blas_thread
from gapfloor.policies.checkpoint import CheckpointPolicy, load_checkpoint_policy
from gapfloor.policies.fingerprint import instruction_set
from gapfloor.policies.load import checkpoint_path
from gapfloor.records.atomic import write_text_atomically
from gapfloor.records.manifest import canonical_json
from gapfloor.records.run_identity import RunIdentity
from gapfloor.representation.checkpoint_cka import CkaSettings, Tell, measure_checkpoint
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.registry import table_of
from gapfloor.tables.table import Table

FORMAT = "gapfloor-cka/1"

#: Raised whenever a measurement would come out differently.
_METHOD = 1


@dataclass(frozen=True, repr=False)
class CkaMeasurement(ReadableResult):
    """What was measured, or what the store already held."""

    row_names = ("records",)

    records: tuple[dict[str, Any], ...]
    """One per checkpoint, with the fields of `gapfloor.report.cka_input`."""
    written: tuple[Path, ...] = ()
    """The files of the store that hold them."""

    def to_dict(self) -> dict[str, Any]:
        """One JSON document."""
        return {"format": FORMAT, "records": list(self.records)}

    def table(self) -> Table:
        """One line per checkpoint."""
        rows = [
            {"run": _name(record), "other": record.get("other_geometry", {}).get("as_computed"), **record}
            for record in self.records
        ]
        return table_of("cka", rows)

    def sentences(self) -> list[str]:
        """What the columns are, and what each row says."""
        first = self.records[0]
        other = first.get("other_geometry")
        geometry = f"; other: as computed with {other['geometry']}" if other else ""
        return [
            f"Training against held-out levels, {first['n']} rows; rows are different inputs, so the value as computed "
            "does not measure generalization. A: train v. test, C: train v. train, both aligned by timestep; B, D: the "
            f"same shuffled (mean of {first['permutations']}). PR: participation ratio of the training rows{geometry}.",
            *(f"{_name(record)}: {_words(record)}" for record in self.records),
        ]


@dataclass(frozen=True, eq=False)
class _Candidate:
    policy: CheckpointPolicy
    spec: EngineSpec
    train: LevelSet

    @property
    def facts(self) -> dict[str, Any]:
        """What it is and how far it was trained."""
        header = self.policy.header
        run = RunIdentity.from_header(header).labels
        return {
            **{name: run[name] for name in ("game", "mode", "agent", "seed", "budget")},
            "steps": header["steps"], "budget_steps": header.get("budget_steps"), "train": str(self.train),
            "policy": self.policy.fingerprint,
        }  # fmt: skip


@one_blas_thread()
def measure_cka(
    checkpoints: Sequence[str | Path],
    settings: CkaSettings,
    *,
    train: LevelSet | None = None,
    store: str | Path | None = None,
    tell: Tell = lambda what: None,
) -> CkaMeasurement:
    """CKA of each checkpoint with its controls.

    Args:
        checkpoints: `.safetensors` files or runs' folders.
        settings: geometry, held-out levels, draw and shuffles.
        train: training levels; None for those of each checkpoint.
        store: the folder below which files go to `results/cka`; None writes no files.
        tell: called with a description of each step.
    """
    records, written = [], []
    for candidate in _load(checkpoints, train, settings.test):
        path = None
        if store is not None:
            path = Path(store) / "results" / "cka" / f"{candidate.policy.name}.json"
            written.append(path)
        records.append(_record(candidate, settings, path, tell))
    return CkaMeasurement(tuple(records), tuple(written))


def _load(checkpoints: Sequence[str | Path], train: LevelSet | None, test: LevelSet) -> list[_Candidate]:
    """Every checkpoint, checked before anything is played."""
    if not checkpoints:
        raise UsageError("No checkpoint is named: give .safetensors files or runs' folders.")
    candidates: list[_Candidate] = []
    for each in checkpoints:
        policy = load_checkpoint_policy(checkpoint_path(str(each)), device="cpu")
        header = policy.header
        spec = make_spec(game_of_file(header["game"], file=each), mode=header["mode"])
        own = train or LevelSet.parse(header["levels"])
        check_disjoint(own, test)
        for other in candidates:
            if other.policy.fingerprint == policy.fingerprint:
                raise UsageError(
                    f"{each} has the same content as a checkpoint named before: name each run once."
                )
            if other.policy.name == policy.name:
                raise PolicyError(
                    f"Two different checkpoints are both {policy.name}: name one of them, or measure them into two "
                    "stores."
                )
        candidates.append(_Candidate(policy, spec, own))
    return candidates


def _record(candidate: _Candidate, settings: CkaSettings, path: Path | None, tell: Tell) -> dict[str, Any]:
    """The record of a checkpoint: that of its file if it was made of the same contents, or measured now and filed."""
    facts, spec = candidate.facts, candidate.spec
    content = [FORMAT, _METHOD, settings.to_dict(), instruction_set(), spec.version, [facts]]
    key = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    held = _read(path) if path is not None else None
    if held is not None and held.get("key") == key:
        return dict(held["records"][0])
    measured = measure_checkpoint(candidate.policy, spec, train=candidate.train, settings=settings, tell=tell)
    record = {**facts, **measured}
    if path is not None:
        engine = {"engine": spec.engine, "version": spec.version}
        document = {
            "format": FORMAT, "key": key, "engine": engine, "settings": settings.to_dict(), "records": [record],
        }  # fmt: skip
        write_text_atomically(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return record


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _name(record: dict[str, Any]) -> str:
    return RunIdentity.from_labels(record).name


def _words(record: dict[str, Any]) -> str:
    words = (
        f"C is {record['C'] / record['A']:.2f} x A; shuffling divides A by {record['A'] / record['B']:.1f} "
        f"(p = {record['A_p']:.3f}) and C by {record['C'] / record['D']:.1f} (p = {record['C_p']:.3f}); "
        f"{record['n_control']} rows."
    )
    planned = record.get("budget_steps")
    if planned and record["steps"] < 0.9 * planned:
        words += f" Trained for {record['steps']:,} of {planned:,} steps."
    return words
