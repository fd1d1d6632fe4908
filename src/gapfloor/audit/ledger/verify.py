"""Checking the ledger against clones: is each evidence line where it is said to be, at its commit?

A line is ok (same text at that number), moved (same text elsewhere in the file) or changed. Files are read
from git objects at the pinned commit, so the state of a work tree does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gapfloor.audit.ledger.entries import EvidenceLine, RegistryEntry, count_ledger, load_ledger
from gapfloor.audit.reading.git import find_git_dir, read_file, resolve_commit
from gapfloor.errors import UsageError
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.registry import table_of
from gapfloor.tables.table import Table

STATES = ("ok", "moved", "changed", "no clone", "no commit")


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
