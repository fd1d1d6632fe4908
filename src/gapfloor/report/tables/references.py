"""Returns against stricter references than the uniform floor, where the data hold any (the paper has none)."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.floor_results import FloorComparisonResult
from gapfloor.report.findings import TEST, Env, Findings
from gapfloor.report.tables.wording import sentence, status_of
from gapfloor.statistics.conventions import NAN, NO_PAIR
from gapfloor.statistics.normalised import has_scale, score_range
from gapfloor.tables.cells import Cell, call_cell, empty_cell, estimate, mean_sem, p_value, text_cell
from gapfloor.tables.table import Column, Table, Text


def references(findings: Findings) -> Table | None:
    """One row per game, rule and reference on held-out levels; None where the uniform floor is the only one."""
    rows: list[tuple[Cell, ...]] = []
    every: list[FloorComparisonResult] = []
    for row in findings.results.reference_comparisons:
        if row.level_set != TEST or row.agent is not None:
            continue
        every.append(row)
        rows.append(
            (
                text_cell(findings.name(Env(row.game, row.mode))),
                text_cell(row.budget),
                text_cell(row.rule),
                text_cell(row.reference),
                mean_sem(row.test.floor, row.test.floor_sem),
                mean_sem(row.test.mean, row.test.sem),
                estimate(row.test.delta, row.test.ci),
                p_value(row.decision.p_holm),
                call_cell(row.decision.call),
            )
        )
    rows += [_published_maximum(findings, row) for row in _first_of_rule(every)]
    if not rows:
        return None
    return Table(
        name="references",
        title="Against stricter references",
        caption=sentence(
            "Held-out return against references that know nothing but are harder to beat than uniform-random play: "
            "the best constant action (chosen on training levels), sticky play, blind policies, networks with random "
            "weights (error over networks). Tests as against the floor; uniform play remains the floor. An upper "
            "reference is a policy to look up to, R_max the published maximum, without an error or a test."
        ),
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Budget"), "l", ("budget",)),
            Column(Text("Rule"), "l", ("rule",)),
            Column(Text("Reference"), "l", ("reference",)),
            Column(Text("Its return"), "r", ("reference_return", "reference_sem")),
            Column(Text("Return"), "r", ("return", "return_sem")),
            Column(Text("Δ [95% CI]", r"$\Delta$ [95\% CI]"), "r", ("delta", "delta_low", "delta_high")),
            Column(Text("Holm p", "Holm $p$"), "r", ("holm_p",)),
            Column(Text("Call"), "l", ("call",)),
        ),
        rows=tuple(rows),
        is_wide=True,
        status=status_of(every),
    )


def _first_of_rule(rows: Sequence[FloorComparisonResult]) -> list[FloorComparisonResult]:
    """The first row of every game, budget and rule whose maximum is known."""
    first: dict[tuple[str, str, str, str], FloorComparisonResult] = {}
    for row in rows:
        if has_scale(row.game, mode=row.mode):
            first.setdefault((row.game, row.mode, row.budget, row.rule), row)
    return list(first.values())


def _published_maximum(findings: Findings, row: FloorComparisonResult) -> tuple[Cell, ...]:
    maximum = float(score_range(row.game, mode=row.mode)[1])
    return (
        text_cell(findings.name(Env(row.game, row.mode))),
        text_cell(row.budget),
        text_cell(row.rule),
        text_cell("R_max", tex=r"$R_{\max}$"),
        mean_sem(maximum, NAN),
        mean_sem(row.test.mean, row.test.sem),
        estimate(row.test.mean - maximum, NO_PAIR),
        empty_cell(),
        empty_cell(),
    )
