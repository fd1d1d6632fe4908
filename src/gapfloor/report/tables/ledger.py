"""What released evaluation code does at test time, from the audit's ledger: audit, commits.

These tables are the same whatever the data, so a report has them only where they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.audit.ledger.entries import LedgerEntry, count_ledger, load_ledger
from gapfloor.escape import escape_tex
from gapfloor.report.tables.wording import sentence
from gapfloor.tables.cells import Cell, count_word, text_cell
from gapfloor.tables.table import Column, Table, Text


def audit(entries: Sequence[LedgerEntry] | None = None) -> Table:
    """The audit: which code bases sample at test time, and which report in-loop returns."""
    ledger = tuple(load_ledger() if entries is None else entries)
    counts = count_ledger(ledger)
    marks = {"*": ("*", "$^*$"), "dagger": ("†", r"$^\dagger$"), "ddagger": ("‡", r"$^\ddagger$")}
    rows = []
    for entry in sorted(ledger, key=lambda entry: entry.audit_row):
        mark = marks.get(entry.footnote_mark or "", ("", ""))
        stochastic = _mark(entry.is_stochastic)
        rows.append(
            (
                text_cell(entry.name),
                text_cell(entry.venue),
                Cell(stochastic.plain + mark[0], stochastic.tex + mark[1], stochastic.raw),
                _mark(entry.in_loop),
            )
        )
    footnotes = [
        f"{marks[entry.footnote_mark][0]} {entry.name}: {entry.footnote}."
        for entry in ledger
        if entry.footnote and entry.footnote_mark in marks
    ]
    caption = sentence(
        "Which of {codebases} released ProcGen code bases sample the test-time actions of their "
        "policy-gradient agents (Stoch.), and which report held-out returns as a running mean from inside "
        "the training loop (In-loop). {sample} of the {heldout} that evaluate on held-out levels sample; "
        "{inherit} of them without an explicit choice. {footnotes}",
        codebases=count_word(counts.codebases).plain,
        sample=count_word(counts.sample).plain.capitalize(),
        heldout=count_word(counts.evaluate_heldout).plain,
        inherit=count_word(counts.without_explicit_choice).plain,
        footnotes=" ".join(footnotes),
    )
    return Table(
        name="audit",
        title="Audit of released evaluation code",
        caption=caption,
        columns=(
            Column(Text("Codebase"), "l", ("codebase",)),
            Column(Text("Venue"), "c", ("venue",)),
            Column(Text("Stoch."), "c", ("stochastic",)),
            Column(Text("In-loop"), "c", ("in_loop",)),
        ),
        rows=tuple(rows),
        size="footnotesize",
        separation="4pt",
    )


def commits(entries: Sequence[LedgerEntry] | None = None) -> Table:
    """Commit and evidence location of every code base, corrected where the paper's location was wrong."""
    ledger = tuple(load_ledger() if entries is None else entries)
    rows = []
    for entry in ledger:
        star = "*" if entry.is_corrected else ""
        rows.append(
            (
                text_cell(entry.name),
                text_cell(entry.venue),
                text_cell(entry.short_commit, tex=rf"\texttt{{{escape_tex(entry.short_commit)}}}"),
                _mark(entry.is_stochastic),
                _mark(entry.in_loop),
                Cell(
                    entry.location + star,
                    rf"\texttt{{{escape_tex(entry.location)}}}{'$^*$' if star else ''}",
                    (entry.location,),
                ),
            )
        )
    corrected = [entry for entry in ledger if entry.is_corrected]
    notes = tuple(f"* {entry.name}, corrected: {entry.correction}" for entry in corrected)
    return Table(
        name="commits",
        title="Commits and evidence of the audit",
        caption=sentence(
            "Commit and evidence of each code base. S: sampled test-time actions, L: in-loop test returns. "
            "An asterisk marks a location that differs from the one first published."
        ),
        columns=(
            Column(Text("Codebase"), "l", ("codebase",)),
            Column(Text("Venue"), "l", ("venue",)),
            Column(Text("Commit"), "l", ("commit",)),
            Column(Text("S"), "c", ("stochastic",)),
            Column(Text("L"), "c", ("in_loop",)),
            Column(Text("Location (file:line)"), "l", ("location",)),
        ),
        rows=tuple(rows),
        notes=notes,
        size="tiny",
        separation="2pt",
        is_wide=True,
    )


def _mark(value: bool | None) -> Cell:
    if value is None:
        return text_cell("n/a")
    return text_cell("✓", tex=r"\checkmark", raw="yes") if value else text_cell("–", tex="--", raw="no")
