"""CKA results as the report reads them: JSON files below `results/cka/` of a store.

A file holds one record, a list of records, or `{"records": [...]}`. A record is one checkpoint, with the fields of
`CkaRecord` (`encoder` is read as `agent`). Only the run and `as_computed` are needed; what is absent leaves its table
entry or number out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gapfloor.errors import UsageError
from gapfloor.input_files import read_input_text
from gapfloor.settings import from_table, parse_json

_NAN = float("nan")
_NUMBERS = (
    "as_computed", "perm_mean", "perm_sd", "z", "analytic", "pr", "A", "B", "C", "D", "geo16",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CkaRecord:
    """One checkpoint's CKA with its controls; NaN where a field was not given."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    seed: str
    """The seed of the run."""
    budget: str
    """Label of the training budget, e.g. 8M; empty if there is none."""
    n: int | None = None
    """Rows compared."""
    n_control: int | None = None
    """Rows of the controls A to D."""
    permutations: int | None = None
    """Shuffles behind the null."""
    as_computed: float
    """CKA of training rows against held-out rows that share slot and step."""
    perm_mean: float = _NAN
    """Mean CKA with one side's rows shuffled."""
    perm_sd: float = _NAN
    """Its standard deviation over shuffles."""
    z: float = _NAN
    """(as_computed - perm_mean) / perm_sd."""
    analytic: float = _NAN
    """That mean without shuffling: sqrt(PR_X PR_Y) / (n - 1)."""
    pr: float = _NAN
    """Participation ratio: how many directions the training features fill."""
    A: float = _NAN
    """Half of the training slots against held-out rows at the same step."""
    B: float = _NAN
    """A with one side's rows shuffled."""
    C: float = _NAN
    """The same training rows against those of the other half of the training slots."""
    D: float = _NAN
    """C with one side's rows shuffled."""
    geo16: float = _NAN
    """As computed with 16 slots x 64 steps, nothing else changed."""
    n_seeds: int = 1
    """How many seeds the numbers are means of."""


def read_cka(folder: Path) -> tuple[CkaRecord, ...]:
    """All records below `folder`, in the order of file names; none where there is no such folder."""
    records: list[CkaRecord] = []
    for path in sorted(Path(folder).glob("*.json")):
        document = parse_json(read_input_text(path), source=f"The file of CKA results {path}")
        for entry in _entries(document):
            records.append(_record(entry, path))
    return tuple(records)


def seed_means(records: Sequence[CkaRecord]) -> CkaRecord:
    """The means of every number over the seeds of an agent; NaN where a seed lacks one."""
    means = {name: sum(getattr(record, name) for record in records) / len(records) for name in _NUMBERS}
    return replace(records[0], seed="", n_seeds=len(records), **means)


def _entries(document: Any) -> list[Any]:
    if isinstance(document, Mapping) and isinstance(document.get("records"), list):
        return list(document["records"])
    return list(document) if isinstance(document, list) else [document]


def _record(entry: Any, path: Path) -> CkaRecord:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{path} holds {type(entry).__name__} where a CKA record (an object) was expected.")
    given = {"agent": entry.get("encoder"), **entry}
    for name in ("game", "agent", "as_computed"):
        if given.get(name) is None:
            raise UsageError(
                f"{path} has a CKA record without `{name}`. See research-notes/cka.md for the fields."
            )
    known = {field.name: given.get(field.name) for field in fields(CkaRecord)}
    labels = {name: str(given.get(name, "")) for name in ("game", "mode", "agent", "seed", "budget")}
    present = {name: value for name, value in known.items() if value is not None}
    return from_table(CkaRecord, present | labels, source=str(path))
