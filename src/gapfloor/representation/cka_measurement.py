"""`measure_cka`: CKA records of checkpoints, as the report reads them, stored below `results/cka` of a store.

There is one file per checkpoint and one per pair of encoders. A file that was made from the same contents with the
same settings is not made again. It holds no time, host or path.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from gapfloor.representation.checkpoint_cka import RecordedPlay, Tell, collect, measure_within
from gapfloor.representation.cka_settings import CkaSettings, Pairs
from gapfloor.representation.shuffled_null import permutation_null
from gapfloor.representation.streams import stream
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.registry import table_of
from gapfloor.tables.table import Table

FORMAT = "gapfloor-cka/1"

#: Raised whenever a measurement would come out differently.
_METHOD = 1


@dataclass(frozen=True, repr=False)
class CkaMeasurement(ReadableResult):
    """What was measured, and what the store already held."""

    row_names = ("records", "cross")

    records: tuple[dict[str, Any], ...]
    """One per checkpoint, with the fields of `gapfloor.report.cka_input`."""
    cross: tuple[dict[str, Any], ...]
    """One per pair, level set and player: CKA of two encoders on identical observations."""
    files: tuple[Path, ...] = ()
    reused: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """One JSON document."""
        return {"format": FORMAT, "records": list(self.records), "cross": list(self.cross)}

    def table(self) -> Table:
        """One line per checkpoint."""
        rows = [
            {"run": _name(record), "other": record.get("other_geometry", {}).get("as_computed"), **record}
            for record in self.records
        ]
        return table_of("cka", rows)

    def sentences(self) -> list[str]:
        """What the columns are, what each row says, and the pairs of encoders."""
        first = self.records[0]
        other = first.get("other_geometry")
        geometry = f"; other: as computed with {other['geometry']}" if other else ""
        return [
            f"Training against held-out levels, {first['n']} rows; rows are different inputs, so the value as computed "
            "does not measure generalization. A: train v. test, C: train v. train, both aligned by timestep; B, D: the "
            f"same shuffled (mean of {first['permutations']}). PR: participation ratio of the training rows{geometry}.",
            *(f"{_name(record)}: {_words(record)}" for record in self.records),
            *(
                f"{_name(entry['x'])} v. {_name(entry['y'])} on identical observations ({entry['level_set']} levels, "
                f"played by {entry['played_by']}): CKA {entry['value']:.3f}, {entry['in_null_units']:.1f} times its "
                "null."
                for entry in self.cross
            ),
        ]


@dataclass(frozen=True, eq=False)
class _Candidate:
    policy: CheckpointPolicy
    spec: EngineSpec
    train: LevelSet
    labels: Mapping[str, Any]
    """Names of the run, as records carry them."""

    @property
    def facts(self) -> dict[str, Any]:
        """What it is and how far it was trained."""
        header = self.policy.header
        return {
            **self.labels, "steps": header["steps"], "budget_steps": header.get("budget_steps"),
            "train": str(self.train), "policy": self.policy.fingerprint,
        }  # fmt: skip


@dataclass(eq=False)
class _Session:
    """One call; each recording is made when it is first needed, and then used again."""

    settings: CkaSettings
    folder: Path | None
    tell: Tell
    recorded: dict[str, RecordedPlay] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)

    def play(self, candidate: _Candidate) -> RecordedPlay:
        """What this checkpoint saw, and its features."""
        name = candidate.policy.name
        if name not in self.recorded:
            self.recorded[name] = collect(
                candidate.policy, candidate.spec, train=candidate.train, settings=self.settings,
                geometry=self.settings.geometry, tell=self.tell,
            )  # fmt: skip
        return self.recorded[name]

    def held(self, name: str, key: str) -> dict[str, Any] | None:
        """The document of this name if it was made of the same contents with the same settings."""
        if self.folder is None:
            return None
        try:
            document = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(document, dict) or document.get("key") != key:
            return None
        self.reused.append(name)
        self.files.append(self.folder / f"{name}.json")
        return document

    def keep(self, name: str, document: dict[str, Any]) -> dict[str, Any]:
        """File a document, if there is a store."""
        if self.folder is not None:
            path = self.folder / f"{name}.json"
            write_text_atomically(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
            self.files.append(path)
        return document


@one_blas_thread()
def measure_cka(
    checkpoints: Sequence[str | Path],
    settings: CkaSettings | None = None,
    *,
    store: str | Path | None = None,
    device: str = "cpu",
    tell: Tell = lambda what: None,
) -> CkaMeasurement:
    """CKA of each checkpoint with its controls, and of pairs of encoders on identical observations.

    Args:
        checkpoints: `.safetensors` files or runs' folders.
        settings: geometry, level sets, rule, draw and shuffles.
        store: the folder below which files go to `results/cka`; None writes no files.
        device: where the networks run.
        tell: called with a description of each step.
    """
    settings = settings or CkaSettings()
    candidates = _load(checkpoints, settings, device)
    pairs = _pairs(candidates, settings.pairs)
    session = _Session(settings, Path(store) / "results" / "cka" if store is not None else None, tell)
    records = [_checkpoint_record(session, candidate) for candidate in candidates]
    cross = [entry for pair in pairs for entry in _cross(session, *pair)]
    return CkaMeasurement(tuple(records), tuple(cross), tuple(session.files), tuple(session.reused))


def _load(checkpoints: Sequence[str | Path], settings: CkaSettings, device: str) -> list[_Candidate]:
    """Every checkpoint, checked before anything is played."""
    if not checkpoints:
        raise UsageError("No checkpoint is named: give .safetensors files or runs' folders.")
    candidates: list[_Candidate] = []
    for each in checkpoints:
        policy = load_checkpoint_policy(checkpoint_path(str(each)), device=device)
        header = policy.header
        spec = make_spec(game_of_file(header["game"], file=each), mode=header["mode"])
        train = settings.train or LevelSet.parse(header["levels"])
        check_disjoint(train, settings.test)
        run = RunIdentity.from_header(header).labels
        labels = {name: run[name] for name in ("game", "mode", "agent", "seed", "budget")}
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
        candidates.append(_Candidate(policy, spec, train, labels))
    return candidates


def _pairs(candidates: list[_Candidate], pairs: Pairs) -> list[tuple[_Candidate, _Candidate]]:
    def belong(one: _Candidate, other: _Candidate) -> bool:
        names: tuple[str, ...] = ("game", "mode", "budget")
        if pairs == "encoders":
            names = (*names, "seed")
            if one.policy.header["encoder"] == other.policy.header["encoder"]:
                return False
        return all(one.labels[name] == other.labels[name] for name in names)

    if pairs == "none":
        return []
    return [pair for pair in itertools.combinations(candidates, 2) if belong(*pair)]


def _key(settings: CkaSettings, *candidates: _Candidate) -> str:
    content = [
        FORMAT, _METHOD, settings.to_dict(), instruction_set(), candidates[0].spec.version,
        [candidate.facts for candidate in candidates],
    ]  # fmt: skip
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _document(settings: CkaSettings, key: str, candidate: _Candidate) -> dict[str, Any]:
    engine = {"engine": candidate.spec.engine, "version": candidate.spec.version}
    return {"format": FORMAT, "key": key, "engine": engine, "settings": settings.to_dict()}


def _checkpoint_record(session: _Session, candidate: _Candidate) -> dict[str, Any]:
    key = _key(session.settings, candidate)
    name = candidate.policy.name
    document = session.held(name, key)
    if document is None:
        measured = measure_within(
            candidate.policy, candidate.spec, session.play(candidate), train=candidate.train,
            settings=session.settings, tell=session.tell,
        )  # fmt: skip
        record = {**candidate.facts, **measured.to_record(session.settings)}
        document = session.keep(name, {**_document(session.settings, key, candidate), "records": [record]})
    record = document["records"][0]
    return dict(record)


def _cross(session: _Session, one: _Candidate, other: _Candidate) -> list[dict[str, Any]]:
    key = _key(session.settings, one, other)
    name = f"cross-{one.policy.name}-{other.policy.name}"
    document = session.held(name, key)
    if document is None:
        entries = []
        for player in (one, other):
            recorded = session.play(player)
            for level_set, (recording, own) in (("train", recorded.train), ("test", recorded.test)):
                session.tell(f"{name}: {level_set} levels, played by {player.policy.name}")
                sides = [own if each is player else recording.features(each.policy) for each in (one, other)]
                null = permutation_null(
                    *sides, permutations=session.settings.permutations,
                    rng=stream("cross", session.settings.seed, key, player.policy.fingerprint, level_set),
                )  # fmt: skip
                entries.append(
                    {
                        "x": dict(one.labels), "y": dict(other.labels), "played_by": player.policy.name,
                        "level_set": level_set, "n": null.n, "value": null.observed, "perm_mean": null.mean,
                        "perm_sd": null.sd, "analytic": null.exact_mean,
                        "in_null_units": null.observed / null.exact_mean,
                    }
                )  # fmt: skip
        # `records` is what the report reads of every file here: a pair adds no row to its table.
        document = {**_document(session.settings, key, one), "records": [], "cross": entries}
        session.keep(name, document)
    return list(document["cross"])


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
