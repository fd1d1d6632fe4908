"""The columns of the rows: the registries of `data/columns.toml` that terminal, notebooks and reports share."""

from __future__ import annotations

from typing import Any

from gapfloor.analysis.rows import AgentDifferenceRow, ComparisonRow, SensitivityRow
from gapfloor.tables.cells import fixed
from gapfloor.tables.registry import Source, read_registry


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
    "upper_reference": lambda row, use: f"{fixed(row.r_max).plain} ({row.upper})",
}
_FOUND = read_registry("", SOURCES)
LABELS, RETURNS, COMPARISONS = _FOUND["labels"], _FOUND["returns"], _FOUND["comparisons"]
GAPS, SCORES, DIFFERENCES = _FOUND["gaps"], _FOUND["scores"], _FOUND["differences"]
COMPARED, SETTLING = _FOUND["compared"], _FOUND["settling"]
#: Every registry with the rows that it belongs to, for the documentation of columns.
REGISTRIES = {
    "labels of every row": LABELS,
    "returns and floors": RETURNS,
    "comparisons with a reference": COMPARISONS,
    "gaps": GAPS,
    "normalised scores": SCORES,
    "the other method": _FOUND["tested"],
    "differences between agents or rules": DIFFERENCES,
    "two agents compared": COMPARED,
    "what would settle a comparison": SETTLING,
    "sensitivity": _FOUND["sensitivity"],
    "other choices": _FOUND["multiverse"],
}
