"""The ledger of twelve code bases, the registry of further audits, and the check of their evidence in clones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.progress import step_teller
from gapfloor.audit.ledger import entries as ledgers
from gapfloor.audit.ledger.registry import RegistryEntry, compare_entries, load_registry
from gapfloor.audit.ledger.verify import LedgerVerification, clone_missing, verify_ledger
from gapfloor.errors import UsageError
from gapfloor.text_tables import ReadableResult, ReportResult, TextTable

#: Where `gapfloor audit verify` looks for clones.
DEFAULT_REPOS = "gapfloor-audit-repos"


@dataclass(frozen=True, repr=False)
class AuditLedger(ReadableResult):
    """Twelve published code bases, classified by hand at pinned commits."""

    row_names = ("entries",)

    counts: ledgers.LedgerCounts
    """The counts of the paper's audit section."""
    entries: tuple[ledgers.LedgerEntry, ...]
    """One per code base, with its evidence."""

    def to_dict(self) -> dict[str, Any]:
        """The document of `gapfloor audit ledger --json`."""
        return {"counts": asdict(self.counts), "entries": [asdict(entry) for entry in self.entries]}

    def tables(self) -> list[TextTable]:
        """The paper's two audit tables."""
        first = (["Code base", "Venue", "Stoch.", "In-loop"], ledgers.audit_table(self.entries))
        headings = ["Code base", "Venue", "Commit", "S", "L", "Location (file:line)"]
        second = (headings, ledgers.commit_table(self.entries))
        return [(names, [list(row) for row in rows]) for names, rows in (first, second)]

    def sentences(self) -> list[str]:
        """The footnotes of the table, and the counts in words."""
        marks = {"*": "*", "dagger": "†", "ddagger": "‡"}
        counts = self.counts
        return [
            *(
                f"{marks[entry.footnote_mark or '*']} {entry.name}: {entry.footnote}"
                for entry in self.entries
                if entry.footnote
            ),
            f"{counts.evaluate_heldout} of {counts.codebases} evaluate on held-out levels; "
            f"{counts.sample} of them sample, {counts.in_loop} report in-loop returns.",
            f"Rule set at the call site {counts.explicit_call_site}, by configuration {counts.config_option}, "
            f"by a default argument {counts.default_argument}, by the training rollout {counts.training_rollout}: "
            f"{counts.without_explicit_choice} without an explicit choice.",
            f"{counts.different_procedures} take train and test numbers from different procedures; "
            f"{counts.locations_corrected} locations of the paper are corrected.",
        ]


@dataclass(frozen=True, repr=False)
class AuditRegistry(ReportResult):
    """Every audited repository: the twelve of the ledger, those of the package, and yours."""

    row_names = ("entries",)

    entries: tuple[RegistryEntry, ...]
    """One per repository."""

    def __repr__(self) -> str:
        return compare_entries(self.entries)


def audit_ledger() -> AuditLedger:
    """The paper's two audit tables, with counts computed from the ledger.

    Returns:
        The entries of twelve code bases: rule, provenance, in-loop, and the lines that show it.

    Examples:
        >>> import gapfloor
        >>> ledger = gapfloor.audit.ledger()
        >>> len(ledger.entries), ledger.counts.evaluate_heldout
        (12, 11)
    """
    return AuditLedger(ledgers.count_ledger(), ledgers.load_ledger())


def audit_registry(files: Sequence[str | Path] = (), *, only: str = "") -> AuditRegistry:
    """A comparison of every audited repository: rule, provenance, in-loop and held out.

    Args:
        files: Registry files of yours, whose entries are added.
        only: Show only the entries whose name, repository, rule or provenance contains this text.

    Returns:
        The entries; `print` shows the comparison as Markdown.

    Examples:
        >>> import gapfloor
        >>> registry = gapfloor.audit.registry()
        >>> len(registry.entries) >= 12
        True
        >>> {entry.rule for entry in gapfloor.audit_registry(only="epsilon-greedy").entries}
        {'epsilon-greedy'}
    """
    entries = load_registry(tuple(Path(file) for file in files))
    found = tuple(
        entry
        for entry in entries
        if only.lower() in f"{entry.name} {entry.repo} {entry.rule} {entry.provenance}".lower()
    )
    if not found:
        raise UsageError(
            f"No entry of the registry contains '{only}'. Leave the filter out to see all of them."
        )
    return AuditRegistry(found)


def audit_verify(
    repos: str | Path = DEFAULT_REPOS,
    *,
    clone: bool = False,
    registry: bool = False,
    files: Sequence[str | Path] = (),
    progress: Callable[[str], None] | bool | None = None,
) -> LedgerVerification:
    """Check every evidence line of the ledger in local clones, at its pinned commit.

    Args:
        repos: Folder of clones: owner+name, owner/name or name.
        clone: Fetch missing pinned commits from GitHub into `repos` first.
        registry: Check the registry of further audits too.
        files: Check these registry files too.
        progress: Called with words about what was fetched. None: a line each on a terminal or in a notebook; False:
            nothing.

    Returns:
        One check per evidence line: ok, moved, changed, no clone or no commit; `is_confirmed` says whether all are ok.

    Examples:
        Without clones no line can be confirmed:

        >>> import gapfloor, tempfile
        >>> found = gapfloor.audit.verify(tempfile.mkdtemp())
        >>> found.is_confirmed, found.count("no clone") == len(found.checks)
        (False, True)
    """
    repos = Path(repos)
    own = tuple(Path(file) for file in files)
    entries = load_registry(own) if registry or own else None
    if clone:
        tell = step_teller(progress)
        repos.mkdir(parents=True, exist_ok=True)
        for repo in clone_missing(repos, entries=entries):
            tell(f"fetched {repo}")
    if not repos.is_dir():
        raise UsageError(
            f"There is no folder '{repos}' with clones. Give --repos DIR, or add --clone to fetch them."
        )
    return verify_ledger(repos, entries=entries)
