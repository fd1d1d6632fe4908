"""The ledger: twelve published code bases, classified by hand at pinned commits, with file and line.

It carries no one's code: a line is named by file, number and the SHA-256 of its text, so that anyone with a
clone can check it (`verify.py`). The paper's audit and commit tables are printed from these entries alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from gapfloor.errors import UsageError
from gapfloor.settings import from_table


@dataclass(frozen=True)
class EvidenceLine:
    """One step of an evidence chain."""

    repo: str
    """owner/name of the repository that holds the line (a dependency for some)."""
    commit: str
    file: str
    line: int
    what: str
    """What the line shows, in our words."""
    line_sha256: str
    """SHA-256 of the line without surrounding white space."""


@dataclass(frozen=True)
class RegistryEntry:
    """One audited repository: its classification and the lines that show it."""

    name: str
    repo: str
    commit: str
    evaluates_heldout: bool | None
    rule: str
    provenance: str
    in_loop: bool | None
    evidence: tuple[EvidenceLine, ...]
    notes: str = ""


@dataclass(frozen=True, kw_only=True)
class LedgerEntry(RegistryEntry):
    """One of the paper's code bases: everything its two audit tables print, and what the paper left out."""

    venue: str
    citation: str
    audit_row: int
    """Row in the paper's audit table, from 1; the ledger's own order is that of the commit table."""
    rule_by_agent: Mapping[str, str]
    footnote_mark: str | None
    footnote: str | None
    paper_location: str
    """The location as the paper prints it."""
    location: str
    """The location that evidences the row: the paper's, or its correction."""
    correction: str | None
    """Why the paper's location is wrong, or None where it holds."""
    train_test: str
    """Whether train and test numbers come from the same procedure: same, different or n/a."""
    train_test_reason: str
    levels: str
    levels_seeded: bool | None

    @property
    def is_corrected(self) -> bool:
        """Whether the paper's location was corrected."""
        return self.correction is not None

    @property
    def short_commit(self) -> str:
        """The first twelve digits, as the paper prints them."""
        return self.commit[:12]

    @property
    def is_stochastic(self) -> bool | None:
        """The table's column S: sampled at test time, or None without a held-out evaluation."""
        return self.rule == "sampled" if self.evaluates_heldout else None


@dataclass(frozen=True)
class LedgerCounts:
    """The counts of the paper's audit section, computed from entries."""

    codebases: int
    evaluate_heldout: int
    sample: int
    in_loop: int
    explicit_call_site: int
    config_option: int
    default_argument: int
    training_rollout: int
    without_explicit_choice: int
    different_procedures: int
    locations_corrected: int
    evidence_lines: int


Entry = TypeVar("Entry", bound=RegistryEntry)


def read_entries(kind: type[Entry], rows: Any, *, source: str) -> tuple[Entry, ...]:
    """The entries of a document; a line of evidence has its entry's repository and commit where it names no other."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{source} is not a registry: `entries` must be a list of objects.")
    names = {field.name for field in fields(kind)}
    found = []
    for number, row in enumerate(rows, start=1):
        home = {name: row[name] for name in ("repo", "commit") if name in row}
        lines = row.get("evidence")
        given = {name: value for name, value in row.items() if name in names}
        if isinstance(lines, list):
            given["evidence"] = [home | line if isinstance(line, dict) else line for line in lines]
        found.append(from_table(kind, given, source=f"Entry {number} of {source}"))
    return tuple(found)


@cache
def load_ledger() -> tuple[LedgerEntry, ...]:
    """The twelve entries, in the order of the paper's commit table."""
    text = resources.files("gapfloor.audit").joinpath("data/ledger.json").read_text(encoding="utf-8")
    return read_entries(LedgerEntry, json.loads(text)["entries"], source="the ledger")


def count_ledger(entries: tuple[LedgerEntry, ...] | None = None) -> LedgerCounts:
    """The section's counts, from `entries` (default: the whole ledger)."""
    entries = load_ledger() if entries is None else entries
    heldout = [entry for entry in entries if entry.evaluates_heldout]

    def from_provenance(name: str) -> int:
        return sum(entry.provenance == name for entry in heldout)

    return LedgerCounts(
        codebases=len(entries),
        evaluate_heldout=len(heldout),
        sample=sum(entry.rule == "sampled" for entry in heldout),
        in_loop=sum(entry.in_loop is True for entry in heldout),
        explicit_call_site=from_provenance("explicit-call-site"),
        config_option=from_provenance("config-option"),
        default_argument=from_provenance("default-argument"),
        training_rollout=from_provenance("training-rollout"),
        without_explicit_choice=from_provenance("default-argument") + from_provenance("training-rollout"),
        different_procedures=sum(entry.train_test == "different" for entry in heldout),
        locations_corrected=sum(entry.is_corrected for entry in entries),
        evidence_lines=sum(len(entry.evidence) for entry in entries),
    )
