"""The gap with and without leaked levels, where the store says which levels leaked (the paper has no such table)."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.leaked import LeakedGap
from gapfloor.report.findings import Env, Findings
from gapfloor.report.tables.wording import sentence
from gapfloor.tables.cells import Cell, fixed, integer, mean_sem, text_cell
from gapfloor.tables.table import Column, Table, Text


def leaks(findings: Findings, rows: Sequence[LeakedGap]) -> Table | None:
    """Three rows per game, agent and rule; None where no leakage was checked."""
    if not rows:
        return None
    return Table(
        name="leaks",
        title="The gap without leaked levels",
        caption=sentence(
            "Gaps with all levels, without held-out levels whose layout equals a training level's (leaked), and "
            "without those and their training twins (shared), of runs (mean and SEM over runs) and of the floor on "
            "the same levels. Levels and held-out episodes are those that remain."
        ),
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Budget"), "l", ("budget",)),
            Column(Text("Agent"), "l", ("agent",)),
            Column(Text("Rule"), "l", ("rule",)),
            Column(Text("Runs"), "r", ("runs",)),
            Column(Text("Left out"), "l", ("left_out",)),
            Column(Text("Train levels"), "r", ("train_levels",)),
            Column(Text("Test levels"), "r", ("test_levels",)),
            Column(Text("Episodes"), "r", ("episodes",)),
            Column(Text("Gap"), "r", ("gap", "gap_sem")),
            Column(Text("Floor's gap"), "r", ("floor_gap",)),
            Column(Text("On left out"), "r", ("test_left_out",)),
        ),
        rows=tuple(_row(findings, row) for row in rows),
        status="exploratory",
        is_wide=True,
    )


def _row(findings: Findings, row: LeakedGap) -> tuple[Cell, ...]:
    return (
        text_cell(findings.name(Env(row.game, row.mode))),
        text_cell(row.budget),
        text_cell(row.agent or ("all" if row.n else "floor")),
        text_cell(row.rule),
        integer(row.n),
        text_cell(row.left_out),
        *map(integer, row.n_levels),
        integer(row.n_episodes),
        mean_sem(row.gap, row.gap_sem),
        fixed(row.floor_gap, sign=True),
        fixed(row.test_left_out),
    )
