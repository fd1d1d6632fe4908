"""The tables that people read first, the same for every command: returns, against the floor, the gap, scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gapfloor.analysis.columns import COMPARISONS, GAPS, LABELS, RETURNS, SCORES
from gapfloor.analysis.known_floors import KNOWN_COLUMNS
from gapfloor.analysis.rows import ComparisonRow, GapRow, ReturnRow, Row, ScoreRow
from gapfloor.plan.lock import NO_KEY
from gapfloor.tables.cells import counted
from gapfloor.tables.column import Column
from gapfloor.tables.table import Table

if TYPE_CHECKING:
    from gapfloor.analysis.results import AnalysisResults

#: Columns that are left out where no row has an entry.
_MAY_BE_EMPTY = ("budget", "agent", "levels", "shipped", "paper")
_WHO = ("game", "mode", "budget", "agent", "rule")


def analysis_tables(results: AnalysisResults) -> list[Table]:
    """Comparisons with the floor, and gaps; what the data do not have is left out."""
    tables = (comparison_table(results.floor_comparisons), gap_table(results.gaps))
    return [table for table in tables if table.rows]


def analysis_size(results: AnalysisResults) -> str:
    """What was read, and by which plan, as one sentence each."""
    plan, source = results.plan, results.source
    size = ", ".join(
        counted(n, noun)
        for n, noun in ((source.n_episodes, "episode"), (source.n_cells, "cell"), (source.n_runs, "run"))
        if n or noun == "run"
    )
    pooled = " The plan pools the runs of all agents." if plan.pooled and len(source.agents) > 1 else ""
    no_key = f" {NO_KEY}." if plan.locked_at else ""
    return f"{size}. Plan {plan.name} ({plan.hash[:12]}): {plan.label}.{no_key}{pooled}"


def floor_table(rows: Sequence[ReturnRow], *, known: bool = False) -> Table:
    """References on their level sets; with `known` next to what the package and the paper say."""
    labels = [LABELS[name] for name in ("game", "mode", "level_set")]
    more = KNOWN_COLUMNS if known else ()
    return _table("floors", "", rows, [*labels, *RETURNS.values(), *more])


def comparison_table(rows: Sequence[ComparisonRow], title: str = "Compared with the floor") -> Table:
    """Runs against a reference."""
    labels = [LABELS[name] for name in (*_WHO, "level_set", "n")]
    columns = [*labels, *COMPARISONS.values(), LABELS["status"]]
    if all(row.reference == "uniform" for row in rows):
        columns.remove(COMPARISONS["reference"])
    return _table("floor_comparisons", title, rows, columns)


def gap_table(rows: Sequence[GapRow]) -> Table:
    """Gaps, with what was tested."""
    labels = [LABELS[name] for name in (*_WHO, "n")]
    return _table("gaps", "Gap (train - test)", rows, [*labels, *GAPS.values(), LABELS["status"]])


def score_table(rows: Sequence[ScoreRow]) -> Table:
    """Normalised scores with the two returns that count as 0 and 1."""
    labels = [LABELS[name] for name in (*_WHO, "level_set")]
    return _table("normalised", "Normalised scores", rows, [*labels, *SCORES.values()])


def _table(name: str, title: str, rows: Sequence[Row], columns: Sequence[Column]) -> Table:
    """A table without the columns of labels that the data do not have."""
    kept = [
        column
        for column in columns
        if column.key not in _MAY_BE_EMPTY or any(column.cell(row).plain for row in rows)
    ]
    return Table(name=name, title=title, columns=tuple(kept), rows=tuple(rows))
