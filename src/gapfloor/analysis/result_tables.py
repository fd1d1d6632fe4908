"""The tables that people read first, the same for every command: returns, against the floor, the gap, scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gapfloor.analysis.rows import ComparisonRow, Decision, GapRow, ReturnRow, ScoreRow
from gapfloor.statistics.estimate import Estimate
from gapfloor.text_tables import TextTable, counted, ends_text, number, p_text, signed, with_error

if TYPE_CHECKING:
    from gapfloor.analysis.results import AnalysisResults


def analysis_tables(results: AnalysisResults) -> dict[str, TextTable]:
    """Title -> headings and cells; what the data do not have is left out."""
    tables = {
        "Compared with the floor": comparison_table(results.floor_comparisons),
        "Gap (train - test)": gap_table(results.gaps),
    }
    return {title: table for title, table in tables.items() if table[1]}


def analysis_size(results: AnalysisResults) -> str:
    """What was read, and by which plan, as one sentence each."""
    plan, source = results.plan, results.source
    size = ", ".join(
        counted(n, noun)
        for n, noun in ((source.n_episodes, "episode"), (source.n_cells, "cell"), (source.n_runs, "run"))
    )
    return f"{size}. Plan {plan.name} ({plan.hash[:12]}): {plan.status}."


def floor_table(rows: Sequence[ReturnRow]) -> TextTable:
    """References on their level sets."""
    headings = ["game", "mode", "level set", "levels", "reference", "mean", "SEM", "episodes"]
    return headings, [
        [row.game, row.mode, row.level_set, row.levels, row.reference, number(row.mean), number(row.sem),
         str(row.n_episodes)]
        for row in rows
    ]  # fmt: skip


def comparison_table(rows: Sequence[ComparisonRow]) -> TextTable:
    """Runs against a reference."""
    reference = "reference" if any(row.reference != "uniform" for row in rows) else "floor"
    headings = [
        "game", "budget", "agent", "rule", "levels", "n", "return", reference, "difference [interval]", "Holm p",
        "call",
    ]  # fmt: skip
    cells = [
        [row.game, row.budget, row.agent or "", row.rule, row.level_set, str(row.n), with_error(row.mean, row.sem),
         _reference(row), estimate_text(row.delta), p_text(row.decision.p_adjusted), _call(row)]
        for row in rows
    ]  # fmt: skip
    return _without_empty(headings, cells)


def gap_table(rows: Sequence[GapRow]) -> TextTable:
    """Gaps, with what was tested."""
    is_adjusted = any(row.estimate.method == "recommended" for row in rows)
    headings = [
        "game", "budget", "agent", "rule", "n", "train", "test", "gap", "floor gap",
        "adjusted [interval]" if is_adjusted else "gap [interval]", "Holm p", "call",
    ]  # fmt: skip
    cells = [
        [row.game, row.budget, row.agent or "", row.rule, str(row.n), with_error(row.train, row.train_sem),
         with_error(row.test, row.test_sem), f"{signed(row.gap)} ± {number(row.gap_sem)}", signed(row.floor_gap),
         estimate_text(row.estimate), p_text(row.decision.p_adjusted), decision_text(row.decision)]
        for row in rows
    ]  # fmt: skip
    return _without_empty(headings, cells)


def score_table(rows: Sequence[ScoreRow]) -> TextTable:
    """Normalised scores with the two returns that count as 0 and 1."""
    headings = ["game", "agent", "rule", "level set", "normalised score", "0 = floor", "1 = upper reference"]
    return headings, [
        [row.game, row.agent or "", row.rule, row.level_set, with_error(row.score, row.sem), number(row.r_min),
         f"{number(row.r_max)} ({row.upper})"]
        for row in rows
    ]  # fmt: skip


def estimate_text(estimate: Estimate) -> str:
    """A difference with its interval, where it has one."""
    value = signed(estimate.value)
    return value if math.isnan(estimate.low) else f"{value} {ends_text(estimate.interval)}"


def decision_text(decision: Decision) -> str:
    """The call with the reason where nothing was tested, or with what speaks against it."""
    return f"{decision.call} (unreliable: {decision.doubt})" if decision.doubt else decision.label


def _reference(row: ComparisonRow) -> str:
    value = with_error(row.floor, row.floor_sem)
    return value if row.reference == "uniform" else f"{row.reference}: {value}"


def _call(row: ComparisonRow) -> str:
    if row.call == "not distinguishable" and not row.equivalence.is_reachable:
        return f"{row.call} (equivalence unreachable)"
    is_of_game = row.call == "equivalent" and row.delta.method == "recommended"
    if is_of_game and not row.equivalence.p_adjusted < 1 - row.delta.confidence:
        return "equivalent (not after correction over games)"
    return decision_text(row.decision)


def _without_empty(headings: list[str], rows: list[list[str]]) -> TextTable:
    """The table without columns of labels that the data do not have."""
    kept = [
        at
        for at, name in enumerate(headings)
        if name not in ("budget", "agent") or any(row[at] for row in rows)
    ]
    return [headings[at] for at in kept], [[row[at] for at in kept] for row in rows]
