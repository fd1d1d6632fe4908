"""The two tables of an analysis that people read first: against the floor, and the gap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gapfloor.analysis.floor_results import FloorComparisonResult
from gapfloor.analysis.gap_results import GapResult
from gapfloor.text_tables import MISSING, TextTable, counted, ends_text, number, p_text, with_error

if TYPE_CHECKING:
    from gapfloor.analysis.results import AnalysisResults

_COMPARISON_HEADINGS = (
    "game", "budget", "rule", "levels", "n", "return", "floor", "delta [interval]", "Holm p", "k/n", "call",
)  # fmt: skip
_GAP_HEADINGS = (
    "game", "budget", "rule", "n", "gap [95% CI]", "t interval", "Fisher p", "Holm p", "Stouffer Z",
    "adjusted [interval]", "its Holm p", "levels", "call",
)  # fmt: skip


def analysis_tables(results: AnalysisResults) -> dict[str, TextTable]:
    """Title -> headings and cells; what the data do not have is left out."""
    plan = results.plan
    tables: dict[str, TextTable] = {}
    if results.floor_comparisons:
        headings = [*_COMPARISON_HEADINGS, _other_call(plan.floor_method)]
        tables["Compared with the floor"] = headings, [_comparison(row) for row in results.floor_comparisons]
    if results.gaps:
        headings = [*_GAP_HEADINGS, _other_call(plan.gap_method)]
        tables["Gap (train - test)"] = headings, [_gap(row) for row in results.gaps]
    return tables


def analysis_size(results: AnalysisResults) -> str:
    """What was read, and by which plan, as one sentence each."""
    plan, source = results.plan, results.source
    size = ", ".join(
        counted(n, noun)
        for n, noun in ((source.n_episodes, "episode"), (source.n_cells, "cell"), (source.n_runs, "run"))
    )
    return f"{size}. Plan {plan.name} ({plan.hash[:12]}): {plan.status}."


def _other_call(method: str) -> str:
    """The heading of the call that the plan did not ask for."""
    return "paper's call" if method == "recommended" else "recommended call"


def _comparison(row: FloorComparisonResult) -> list[str]:
    test = row.test
    return [
        row.game, row.budget, row.rule, row.level_set, str(row.n), with_error(test.mean, test.sem),
        with_error(test.floor, test.floor_sem), f"{row.call_delta:+.2f} {ends_text(row.call_interval)}",
        p_text(row.call_p), f"{test.runs_above}/{row.n}", *_calls(row),
    ]  # fmt: skip


def _gap(row: GapResult) -> list[str]:
    gap = row.gap
    return [
        row.game, row.budget, row.rule, str(row.n), f"{gap.mean:+.2f} {ends_text(gap.ci)}",
        ends_text(gap.t_interval), p_text(gap.p_fisher), p_text(row.p_holm), number(gap.stouffer_z),
        *_excess(row), *_gap_calls(row),
    ]  # fmt: skip


def _calls(row: FloorComparisonResult) -> tuple[str, str]:
    """The call of the plan's method, then that of the other one."""
    call = row.call_label
    if call == "not distinguishable" and row.robust.equivalence_unreachable:
        call = f"{call} (equivalence unreachable)"
    assert row.recommended is not None
    if row.method == "recommended" and call == "equivalent" and not row.recommended.equivalent_in_family:
        call = "equivalent (not after correction over games)"
    if row.method == "recommended":
        return (f"{call} (unreliable: {row.doubt})" if row.doubt else call), row.decision.call
    return call, row.recommended.label


def _excess(row: GapResult) -> tuple[str, str, str]:
    assert row.recommended is not None
    test = row.recommended.test
    if math.isnan(test.excess):
        return MISSING, MISSING, MISSING
    levels = "+".join(str(n) for n in test.n_levels)
    if test.n_levels != test.n_levels_played:
        levels += f" of {'+'.join(str(n) for n in test.n_levels_played)}"
    return (
        f"{test.excess:+.2f} {ends_text(row.recommended.interval)}",
        p_text(row.recommended.p_holm),
        levels,
    )


def _gap_calls(row: GapResult) -> tuple[str, str]:
    assert row.recommended is not None
    if row.method == "recommended":
        return row.call_label, row.paper_call
    return row.call_label, row.recommended.label
