"""The columns of the rows, which terminal, notebooks and reports share, and the tables that people read first.

`data/columns.toml` describes the columns; the tables are the same for every command.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from gapfloor.analysis.rows import (
    AgentDifferenceRow,
    ComparisonRow,
    GapRow,
    ReturnRow,
    Row,
    ScoreRow,
    SensitivityRow,
)
from gapfloor.tables.cells import fixed
from gapfloor.tables.table import BLANK, Column, Source, Table, read_registry


def _comparison_call(row: ComparisonRow, use: Any) -> str:
    if row.call == "not distinguishable" and not row.equivalence.is_reachable:
        return f"{row.call} (equivalence unreachable)"
    return row.decision.label


def call_words(row: AgentDifferenceRow) -> str:
    """The call with the name of the agent that is higher."""
    named = {"first higher": f"{row.agent} higher", "second higher": f"{row.agent_b} higher"}
    return named.get(row.decision.call, row.decision.label)


def _flips(row: SensitivityRow, use: Any) -> str:
    by_call: dict[str, list[str]] = {}
    for flip in row.flips:
        by_call.setdefault(flip.call, []).append(flip.choice)
    return "; ".join(f"{call}: {', '.join(choices)}" for call, choices in by_call.items())


def _needed(needed: int | None, *now: int) -> str:
    if needed is None:
        return "–"
    here = " and ".join(map(str, now))
    return f"enough ({here})" if needed <= min(now) else f"{needed} (now {here})"


def _known_floor(key: str, row: ReturnRow, use: Any) -> Any:
    from gapfloor.analysis.known_floors import shipped_procgen_floor  # needs the registry of floors

    return shipped_procgen_floor(row, key) or BLANK


#: What columns take from a row where it is not one of its fields.
SOURCES: dict[str, Source] = {
    "comparison_call": _comparison_call,
    "decision_call": lambda row, use: row.decision.label,
    "quantity": lambda row, use: (
        row.level_set if isinstance(row, ComparisonRow) else getattr(row, "quantity", "gap")
    ),
    "tested": lambda row, use: row.delta if isinstance(row, ComparisonRow) else row.estimate,
    "p_of_difference": lambda row, use: (
        row.decision.p_adjusted if hasattr(row, "decision") else row.p_adjusted
    ),
    "flips": _flips,
    "agent_call": lambda row, use: call_words(row),
    "n_runs": lambda row, use: ", ".join(map(str, row.n_runs)),
    "runs_needed": lambda row, use: _needed(row.runs_needed, *row.n_runs),
    "shipped": partial(_known_floor, "measured"),
    "paper": partial(_known_floor, "paper"),
    "upper_reference": lambda row, use: f"{fixed(row.r_max).plain} ({row.upper})",
}
#: The columns of rows by registry.
REGISTRIES = read_registry("", SOURCES)
LABELS, RETURNS, COMPARISONS = (REGISTRIES[name] for name in ("labels", "returns", "comparisons"))
GAPS, SCORES = REGISTRIES["gaps"], REGISTRIES["scores"]
COMPARED, SETTLING = REGISTRIES["compared"], REGISTRIES["settling"]
#: Columns that are left out where no row has an entry.
_MAY_BE_EMPTY = ("budget", "agent", "levels", "shipped", "paper")
_WHO = ("game", "mode", "budget", "agent", "rule")


def floor_table(rows: Sequence[ReturnRow], *, known: bool = False) -> Table:
    """References on their level sets; with `known` next to what the package and the paper say."""
    labels = [LABELS[name] for name in ("game", "mode", "level_set")]
    more = REGISTRIES["known"].values() if known else ()
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
        if column.key not in _MAY_BE_EMPTY or any(column.entry(row).plain for row in rows)
    ]
    return Table(name=name, title=title, columns=tuple(kept), rows=tuple(rows))
