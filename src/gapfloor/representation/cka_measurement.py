"""`measure_cka`: CKA of checkpoints between training and held-out levels, with its controls, as the report reads it.

The value alone measures nothing, since its rows are different inputs. It is never given without its null, the 2x2
control and a second collection geometry: together a row of the paper's table "ckacontrol". In a store there is one file
per checkpoint below `results/cka`, without time, host or path; one that was made from the same contents with the same
settings is not made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import game_of_file, make_spec
from gapfloor.errors import PolicyError, UsageError
from gapfloor.json_values import jsonable
from gapfloor.levels.schedule import LevelSet, check_disjoint, check_draw
from gapfloor.machine import one_blas_thread
from gapfloor.policies.checkpoint import CheckpointPolicy, load_network
from gapfloor.policies.load import checkpoint_path
from gapfloor.policies.policy import instruction_set
from gapfloor.records.atomic import write_text_atomically
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.stored_cell import canonical_json
from gapfloor.representation.recording import Geometry, Recording, encode, record_play, stream
from gapfloor.representation.similarity import (
    Floats,
    PermutationNull,
    align_controls,
    align_rows,
    participation_ratio,
    permutation_null,
)
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of

FORMAT = "gapfloor-cka/1"

#: Raised whenever a measurement would come out differently.
_METHOD = 1

#: The most blocks of slots that are played to fill the 2x2 control; more are not worth the few missing rows.
MOST_BLOCKS = 4

#: A recording and the features of the checkpoint's encoder: on its training levels, and on the held-out ones.
Sides = tuple[tuple[Recording, Floats], tuple[Recording, Floats]]


@dataclass(frozen=True, kw_only=True)
class CkaSettings:
    """How observations are collected and compared, the same for every checkpoint."""

    geometry: Geometry
    other_geometry: Geometry | None
    """The second collection, with the same number of rows; None to leave it out."""
    test: LevelSet
    draw: int
    permutations: int

    def __post_init__(self) -> None:
        check_draw(self.draw)
        if self.permutations < 2:
            raise UsageError(f"--permutations {self.permutations} gives no null: use at least 2.")
        if self.other_geometry is not None and self.other_geometry.rows != self.geometry.rows:
            raise UsageError(
                f"The geometries {self.geometry} and {self.other_geometry} hold {self.geometry.rows} and "
                f"{self.other_geometry.rows} rows: CKA depends on the number of rows, so they must agree."
            )

    def to_dict(self) -> dict[str, Any]:
        """The settings as a file records them; each checkpoint records its own training levels."""
        return {
            "geometry": str(self.geometry),
            "other_geometry": str(self.other_geometry) if self.other_geometry else None,
            "test": str(self.test), "rule": "sampled", "draw": self.draw, "permutations": self.permutations,
            "shuffle_seed": 0,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class CkaMeasurement(ReadableResult):
    """What was measured, or what the store already held."""

    row_names = ("records",)

    records: tuple[dict[str, Any], ...]
    """One per checkpoint, with the fields of `gapfloor.report.cka`."""
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


@one_blas_thread()
def measure_cka(
    checkpoints: Sequence[str | Path],
    settings: CkaSettings,
    *,
    train: LevelSet | None,
    store: str | Path | None,
    tell: Callable[[str], None],
) -> CkaMeasurement:
    """CKA of each checkpoint (a file, or the folder of a run) with its controls; see `gapfloor.api.cka`."""
    if not checkpoints:
        raise UsageError("No checkpoint is named: give .safetensors files or runs' folders.")
    policies: list[CheckpointPolicy] = []
    wanted = []
    for name in checkpoints:
        policy = load_network(checkpoint_path(str(name)), backend="torch")
        if any(other.fingerprint == policy.fingerprint for other in policies):
            raise UsageError(f"{name} has the same content as a checkpoint named before: name each run once.")
        if any(other.name == policy.name for other in policies):
            raise PolicyError(
                f"Two different checkpoints are both {policy.name}: name one of them, or measure them into two stores."
            )
        policies.append(policy)
        header = policy.header
        spec = make_spec(game_of_file(header["game"], file=name), mode=header["mode"])
        levels = train or LevelSet.parse(header["levels"])
        check_disjoint(levels, settings.test)
        path = Path(store) / "results" / "cka" / f"{policy.name}.json" if store is not None else None
        wanted.append((policy, spec, levels, path))
    records = tuple(_record(*each, settings, tell) for each in wanted)
    return CkaMeasurement(records, tuple(path for *_, path in wanted if path is not None))


def _record(
    policy: CheckpointPolicy,
    spec: EngineSpec,
    train: LevelSet,
    path: Path | None,
    settings: CkaSettings,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """The record of a checkpoint: that of its file if it was made of the same contents, or measured now and filed."""
    run = RunIdentity.from_header(policy.header).labels
    facts = {
        **{name: run[name] for name in ("game", "mode", "agent", "seed", "budget")},
        "steps": policy.header["steps"], "budget_steps": policy.header.get("budget_steps"), "train": str(train),
        "policy": policy.fingerprint,
    }  # fmt: skip
    content = [FORMAT, _METHOD, settings.to_dict(), instruction_set(), spec.version, [facts]]
    key = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    if path is not None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            held = json.loads(path.read_text(encoding="utf-8"))
            if held.get("key") == key:
                return dict(held["records"][0])
    record = {**facts, **_measure(policy, spec, train, settings, tell)}
    if path is not None:
        engine = {"engine": spec.engine, "version": spec.version}
        document = {
            "format": FORMAT, "key": key, "engine": engine, "settings": settings.to_dict(), "records": [record],
        }  # fmt: skip
        write_text_atomically(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return record


def _measure(
    policy: CheckpointPolicy,
    spec: EngineSpec,
    train: LevelSet,
    settings: CkaSettings,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """The fields that the report reads (`gapfloor.report.cka`), and what is behind them."""

    def collect(geometry: Geometry) -> Sides:
        """Let the checkpoint play both level sets and encode what it saw."""
        sides = []
        for levels in (train, settings.test):
            tell(f"{policy.name}: levels {levels}, {geometry}")
            recording = record_play(
                policy, spec, levels=levels, geometry=geometry, draw=settings.draw, fingerprint=policy.fingerprint,
                name=policy.name,
            )  # fmt: skip
            sides.append((recording, encode(policy, recording.observations)))
        return sides[0], sides[1]

    def null(sides: Sides, purpose: str) -> PermutationNull:
        rng = stream(purpose, 0, policy.fingerprint)
        return permutation_null(sides[0][1], sides[1][1], rng=rng, permutations=settings.permutations)

    slots, steps = settings.geometry.slots, settings.geometry.steps
    recorded = whole = collect(settings.geometry)
    for blocks in range(2, MOST_BLOCKS + 1):
        if len(align_rows(whole[0][0], whole[1][0], block=slots)[0]) == settings.geometry.rows // 2:
            break
        # Episodes ended and slots fell out of step: the same slots again, and as many more.
        whole = collect(Geometry(slots * blocks, steps))
    rng = stream("control", 0, policy.fingerprint)
    test_control, train_control = align_controls(
        *whole, rng=rng, permutations=settings.permutations, block=slots
    )
    as_computed = null(recorded, "as computed")
    record: dict[str, Any] = {
        "n": as_computed.n, "permutations": as_computed.permutations, **_null_fields(as_computed),
        "pr": participation_ratio(recorded[0][1]), "pr_test": participation_ratio(recorded[1][1]),
        "n_control": test_control.n, "A": test_control.observed, "B": test_control.mean, "C": train_control.observed,
        "D": train_control.mean, "A_p": test_control.p_value, "C_p": train_control.p_value,
    }  # fmt: skip
    if settings.other_geometry is not None:
        other = null(collect(settings.other_geometry), "other geometry")
        record["other_geometry"] = {"geometry": str(settings.other_geometry), **_null_fields(other)}
        if settings.other_geometry.slots == 16:
            record["geo16"] = other.observed
    return record


def _null_fields(null: PermutationNull) -> dict[str, Any]:
    """A value and its null, as a record has them."""
    return {
        "as_computed": null.observed, "perm_mean": null.mean, "perm_sd": null.sd, "z": jsonable(null.z),
        "analytic": null.exact_mean,
    }  # fmt: skip


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
