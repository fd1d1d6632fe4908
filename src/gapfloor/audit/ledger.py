"""The ledger and the registry: code bases that were classified by hand at pinned commits, with file and line.

The ledger has the twelve of the paper, whose audit and commit tables are printed from these entries alone; the registry
has any number of further ones, from the package and from files of your own. No one's code is carried: a line is named
by file, number and the SHA-256 of its text, so that anyone with a clone can check it.

Against a clone a line is ok (same text at that number), moved (same text elsewhere in the file) or changed. Files are
read from git objects at the pinned commit, so the state of a work tree does not matter.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from gapfloor.audit.interpreter.facts import table
from gapfloor.audit.pages import page
from gapfloor.audit.reading.git import find_git_dir, read_file, resolve_commit
from gapfloor.errors import UsageError
from gapfloor.input_files import read_input_text
from gapfloor.settings import from_table, parse_json
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of

SCHEMA = "gapfloor-audit-registry/1"
STATES = ("ok", "moved", "changed", "no clone", "no commit")


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
    return read_entries(LedgerEntry, table("ledger")["entries"], source="the ledger")


def count_ledger(entries: tuple[LedgerEntry, ...] | None = None) -> LedgerCounts:
    """The section's counts, from `entries` (default: the whole ledger)."""
    entries = load_ledger() if entries is None else entries
    heldout = [entry for entry in entries if entry.evaluates_heldout]
    provenances = Counter(entry.provenance for entry in heldout)
    return LedgerCounts(
        codebases=len(entries),
        evaluate_heldout=len(heldout),
        sample=sum(entry.rule == "sampled" for entry in heldout),
        in_loop=sum(entry.in_loop is True for entry in heldout),
        explicit_call_site=provenances["explicit-call-site"],
        config_option=provenances["config-option"],
        default_argument=provenances["default-argument"],
        training_rollout=provenances["training-rollout"],
        without_explicit_choice=provenances["default-argument"] + provenances["training-rollout"],
        different_procedures=sum(entry.train_test == "different" for entry in heldout),
        locations_corrected=sum(entry.is_corrected for entry in entries),
        evidence_lines=sum(len(entry.evidence) for entry in entries),
    )


def load_registry(files: tuple[Path, ...] = ()) -> tuple[RegistryEntry, ...]:
    """The twelve of the ledger, the registry of the package, and the entries of `files`, in this order."""
    documents: dict[str, Any] = {"the package's registry": table("registry")}
    documents |= {
        f"'{path}'": parse_json(read_input_text(path), source=f"The registry '{path}'") for path in files
    }
    names = [field.name for field in fields(RegistryEntry)]
    found = [RegistryEntry(**{name: getattr(entry, name) for name in names}) for entry in load_ledger()]
    for where, document in documents.items():
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise UsageError(f"{where} is not a registry: its schema must be '{SCHEMA}'.")
        found += read_entries(RegistryEntry, document.get("entries"), source=where)
    return tuple(found)


def compare_entries(entries: tuple[RegistryEntry, ...]) -> str:
    """A Markdown page that compares audits: one row per repository, then the counts."""
    ordered = sorted(entries, key=lambda item: (item.rule, item.provenance, item.name.lower()))
    counts = Counter(entry.rule for entry in entries).most_common()
    return page("registry.md", entries=ordered, rules=", ".join(f"{count} {rule}" for rule, count in counts))


@dataclass(frozen=True)
class LineCheck:
    """One evidence line against a clone."""

    entry: str
    evidence: EvidenceLine
    state: str
    """ok, moved, changed, no clone or no commit."""
    found_at: tuple[int, ...] = ()
    """Where the text stands now, when it moved."""


@dataclass(frozen=True, repr=False)
class LedgerVerification(ReadableResult):
    """All evidence lines of some ledger entries, checked."""

    row_names = ("checks",)

    checks: tuple[LineCheck, ...]

    def count(self, state: str) -> int:
        """How many lines are in `state`."""
        return sum(check.state == state for check in self.checks)

    @property
    def is_confirmed(self) -> bool:
        """Whether every line was found in its place."""
        return all(check.state == "ok" for check in self.checks)

    @property
    def failure(self) -> str:  # type: ignore[override]
        """How many lines were not confirmed; empty where all were."""
        wrong = len(self.checks) - self.count("ok")
        return f"{wrong} of {len(self.checks)} evidence lines were not confirmed." if wrong else ""

    def to_dict(self) -> dict[str, Any]:
        """The document of `gapfloor audit ledger --repos DIR --json`."""
        return {
            "counts": asdict(count_ledger()),
            "lines": {state: self.count(state) for state in STATES},
            "checks": [
                {"entry": check.entry}
                | {name: value for name, value in asdict(check.evidence).items() if name != "line_sha256"}
                | {"state": check.state, "found_at": list(check.found_at)}
                for check in self.checks
            ],
        }

    def table(self) -> Table:
        """How many lines of each entry are in place."""
        by_entry: dict[str, list[str]] = {}
        for check in self.checks:
            by_entry.setdefault(check.entry, []).append(check.state)
        return table_of(
            "evidence",
            [
                {"entry": name, "lines": len(states), "ok": states.count("ok")}
                for name, states in by_entry.items()
            ],
        )

    def sentences(self) -> list[str]:
        """Every line that is not in place, and the total."""
        lines = []
        for check in self.checks:
            if check.state != "ok":
                line = check.evidence
                where = f" (now line {', '.join(map(str, check.found_at))})" if check.found_at else ""
                place = f"{line.repo}@{line.commit[:12]} {line.file}:{line.line}"
                lines.append(f"{check.state}: {check.entry} {place}{where}")
        return [*lines, f"{self.count('ok')} of {len(self.checks)} evidence lines ok"]


def find_clone(repos: Path, repo: str) -> Path | None:
    """The git directory of owner/name below `repos`: owner+name, owner+name/repo, owner/name or name."""
    owner, _, name = repo.partition("/")
    for folder in (repos / f"{owner}+{name}", repos / owner / name, repos / name):
        for candidate in (folder, folder.with_name(folder.name + ".git")):
            git_dir = find_git_dir(candidate)
            if git_dir is not None:
                return git_dir
    return None


def hash_line(text: str) -> str:
    """SHA-256 of a line without its surrounding white space.

    >>> hash_line("  x = 1 ") == hash_line("x = 1")
    True
    """
    return hashlib.sha256(text.strip().encode()).hexdigest()


def verify_ledger(repos: Path, *, entries: Sequence[RegistryEntry] | None = None) -> LedgerVerification:
    """Check every evidence line of `entries` (default: the whole ledger) in the clones below `repos`."""
    entries = load_ledger() if entries is None else entries
    hashes: dict[tuple[str, str, str], list[str] | str] = {}
    checks = []
    for entry in entries:
        for line in entry.evidence:
            key = (line.repo, line.commit, line.file)
            if key not in hashes:
                hashes[key] = _hash_file(Path(repos), line)
            checks.append(LineCheck(entry.name, line, *_state(line, hashes[key])))
    return LedgerVerification(checks=tuple(checks))


def _hash_file(repos: Path, line: EvidenceLine) -> list[str] | str:
    git_dir = find_clone(repos, line.repo)
    if git_dir is None:
        return "no clone"
    try:
        commit = resolve_commit(git_dir, line.commit)
    except UsageError:
        return "no commit"
    data = read_file(git_dir, commit, line.file)
    if data is None:
        return "changed"
    return [hash_line(text) for text in data.decode("utf-8", errors="replace").split("\n")]


def _state(line: EvidenceLine, hashes: list[str] | str) -> tuple[str, tuple[int, ...]]:
    """The state of a line, and where its text stands now if it moved."""
    if isinstance(hashes, str):
        return hashes, ()
    if 0 < line.line <= len(hashes) and hashes[line.line - 1] == line.line_sha256:
        return "ok", ()
    found = tuple(number for number, digest in enumerate(hashes, start=1) if digest == line.line_sha256)
    return "moved" if found else "changed", found
