"""The ledger of twelve code bases, the registry of further audits, and the check of their evidence in clones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gapfloor.audit import ledger as ledgers
from gapfloor.audit.ledger import LedgerVerification, compare_entries, load_registry, verify_ledger
from gapfloor.errors import UsageError
from gapfloor.records.atomic import check_file, write_text_atomically
from gapfloor.tables.readable import ReadableResult, ReportResult
from gapfloor.tables.table import Table


@dataclass(frozen=True, repr=False)
class AuditLedger(ReadableResult):
    """Twelve published code bases, classified by hand at pinned commits."""

    row_names = ("entries",)

    counts: ledgers.LedgerCounts
    """The counts of the paper's audit section."""
    entries: tuple[ledgers.LedgerEntry, ...]
    """One per code base, with its evidence."""

    def tables(self) -> list[Table]:
        """The paper's two audit tables."""
        from gapfloor.report.tables.columns import columns_named

        ordered = sorted(self.entries, key=lambda entry: entry.audit_row)
        return [
            Table(
                name=name, columns=tuple(columns_named(key)[0] for key in keys.split()), rows=tuple(entries)
            )
            for name, keys, entries in (
                ("audit", "codebase venue stochastic in_loop", ordered),
                ("commits", "codebase venue commit samples in_loop location", self.entries),
            )
        ]

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
            *(
                f"* {entry.name}: corrected, the paper has {entry.paper_location}"
                for entry in self.entries
                if entry.is_corrected
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

    entries: tuple[ledgers.RegistryEntry, ...]
    """One per repository."""

    def __repr__(self) -> str:
        return compare_entries(self.entries)


def audit_ledger(
    *,
    registry: bool = False,
    files: Sequence[str | Path] = (),
    only: str = "",
    repos: str | Path | None = None,
    out: str | Path | None = None,
) -> AuditLedger | AuditRegistry | LedgerVerification:
    """Show the code bases that were audited by hand, or check their evidence in clones.

    The ledger has the twelve code bases of the paper, with counts computed from their entries; the registry has further
    ones. Every entry names the lines that show its rule, at a pinned commit.

    Args:
        registry: Show the registry: rule, provenance, in-loop and held out of every audited repository.
        files: A registry file of yours, whose entries are added to the registry.
        only: Show the entries of the registry whose name, repository, rule or provenance contains this text.
        repos: Check every evidence line in this folder of clones: owner+name, owner/name or name.
        out: File for the page of the registry (Markdown).

    Returns:
        The entries of twelve code bases; those of the registry; or one check per evidence line (ok, moved, changed, no
        clone or no commit), whose `is_confirmed` says whether all are ok.

    Command line:
        gapfloor audit ledger
        gapfloor audit ledger --registry --only epsilon-greedy
        gapfloor audit ledger --registry --repos clones

    Examples:
        >>> import gapfloor, tempfile
        >>> ledger = gapfloor.audit.ledger()
        >>> len(ledger.entries), ledger.counts.evaluate_heldout
        (12, 11)
        >>> {entry.rule for entry in gapfloor.audit.ledger(only="epsilon-greedy").entries}
        {'epsilon-greedy'}

        Without clones no line can be confirmed:

        >>> found = gapfloor.audit.ledger(repos=tempfile.mkdtemp())
        >>> found.is_confirmed, found.count("no clone") == len(found.checks)
        (False, True)
    """
    check_file(out)
    own = tuple(Path(file) for file in files)
    if repos is not None:
        if not Path(repos).is_dir():
            raise UsageError(f"There is no folder '{repos}' with clones. Name another folder as repos.")
        return verify_ledger(Path(repos), entries=load_registry(own) if registry or own else None)
    if not (registry or own or only or out):
        return AuditLedger(ledgers.count_ledger(), ledgers.load_ledger())
    found = tuple(
        entry
        for entry in load_registry(own)
        if only.lower() in f"{entry.name} {entry.repo} {entry.rule} {entry.provenance}".lower()
    )
    if not found:
        raise UsageError(
            f"No entry of the registry contains '{only}'. Leave the filter out to see all of them."
        )
    if out is not None:
        write_text_atomically(Path(out), compare_entries(found))
    return AuditRegistry(found)
