"""The ledger: twelve published code bases, classified by hand at pinned commits, with file and line.

It carries no one's code: a line is named by file, number and the SHA-256 of its text, so that anyone with a
clone can check it (`verify.py`). The paper's audit and commit tables are printed from these entries alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


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
class LedgerEntry:
    """One code base: everything the paper's two audit tables print, and what the paper left out."""

    name: str
    repo: str
    commit: str
    venue: str
    citation: str
    audit_row: int
    """Row in the paper's audit table, from 1; the ledger's own order is that of the commit table."""
    evaluates_heldout: bool
    rule: str
    provenance: str
    in_loop: bool | None
    rule_by_agent: tuple[tuple[str, str], ...]
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
    notes: str
    evidence: tuple[EvidenceLine, ...]

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


@cache
def load_ledger() -> tuple[LedgerEntry, ...]:
    """The twelve entries, in the order of the paper's commit table."""
    text = resources.files("gapfloor.audit").joinpath("data/ledger.json").read_text(encoding="utf-8")
    return tuple(_entry(row) for row in json.loads(text)["entries"])


def _entry(row: dict[str, object]) -> LedgerEntry:
    fields = dict(row)
    lines = fields.pop("evidence")
    agents = fields.pop("rule_by_agent")
    assert isinstance(lines, list)
    assert isinstance(agents, dict)
    evidence = tuple(
        EvidenceLine(**({"repo": fields["repo"], "commit": fields["commit"]} | line)) for line in lines
    )
    return LedgerEntry(evidence=evidence, rule_by_agent=tuple(agents.items()), **fields)  # type: ignore[arg-type]


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
