"""The gap with and without leaked levels, where the store says which levels leaked (the paper has no such table)."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.leaked import LeakedGap
from gapfloor.report.findings import Env, Findings
from gapfloor.report.tables.wording import sentence
from gapfloor.tables.cells import Cell, fixed, integer, mean_sem, text_cell
from gapfloor.tables.table import Column, ColumnGroup, Table, Text


def leaks(findings: Findings, rows: Sequence[LeakedGap]) -> Table | None:
    """One row per game, agent and rule; None where no leakage was checked."""
    if not rows:
        return None
    return Table(
        name="leaks",
        title="The gap without leaked levels",
        caption=sentence(
            "Gaps with all levels, without held-out levels whose layout equals a training level's (leaked), and "
            "without those and their training twins (shared), of runs (mean and SEM over runs) and of the floor on "
            "the same levels. Left: held-out episodes that remain."
        ),
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Budget"), "l", ("budget",)),
            Column(Text("Agent"), "l", ("agent",)),
            Column(Text("Rule"), "l", ("rule",)),
            Column(Text("Runs"), "r", ("runs",)),
            Column(Text("Leaked"), "r", ("leaked_levels", "levels")),
            Column(Text("Left"), "r", ("episodes_left", "episodes")),
            Column(Text("all"), "r", ("gap", "gap_sem")),
            Column(Text("no leaked"), "r", ("gap_without", "gap_without_sem")),
            Column(Text("no shared"), "r", ("gap_unshared", "gap_unshared_sem")),
            Column(Text("all"), "r", ("floor_gap",)),
            Column(Text("no leaked"), "r", ("floor_gap_without",)),
            Column(Text("no shared"), "r", ("floor_gap_unshared",)),
            Column(Text("On leaked"), "r", ("test_leaked",)),
        ),
        groups=(ColumnGroup(Text("Gap"), 7, 9), ColumnGroup(Text("Floor's gap"), 10, 12)),
        rows=tuple(_row(findings, row) for row in rows),
        status="exploratory",
        is_wide=True,
    )


def _row(findings: Findings, row: LeakedGap) -> tuple[Cell, ...]:
    return (
        text_cell(findings.name(Env(row.game, row.mode))),
        text_cell(row.budget),
        text_cell(row.agent or ("all" if row.n_runs else "floor")),
        text_cell(row.rule),
        integer(row.n_runs),
        _of(row.leaked_levels, row.levels),
        _of(row.episodes_left, row.episodes),
        mean_sem(row.gap, row.sem),
        mean_sem(row.gap_without, row.sem_without),
        mean_sem(row.gap_unshared, row.sem_unshared),
        fixed(row.floor_gap, sign=True),
        fixed(row.floor_gap_without, sign=True),
        fixed(row.floor_gap_unshared, sign=True),
        fixed(row.test_leaked),
    )


def _of(part: int, whole: int) -> Cell:
    return Cell(f"{part}/{whole}", f"{part}/{whole}", (part, whole))
