"""Returns against stricter references than the uniform floor, where the data hold any (the paper has none)."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.rows import ComparisonRow
from gapfloor.report.findings import TEST, Env, Findings
from gapfloor.report.tables.wording import FLOOR_WORDS, sentence, status_of
from gapfloor.statistics.conventions import NAN, NO_PAIR
from gapfloor.statistics.normalised import has_scale, score_range
from gapfloor.tables.cells import Cell, call_cell, empty_cell, estimate, mean_sem, p_value, text_cell
from gapfloor.tables.table import Column, Table, Text


def references(findings: Findings) -> Table | None:
    """One row per game, rule and reference on held-out levels; None where the uniform floor is the only one."""
    rows: list[tuple[Cell, ...]] = []
    every: list[ComparisonRow] = []
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
                mean_sem(row.floor, row.floor_sem),
                mean_sem(row.mean, row.sem),
                estimate(row.delta.value, row.delta.interval),
                p_value(row.decision.p_adjusted),
                call_cell(row.call),
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
            Column(FLOOR_WORDS[findings.plan.floor_method].header, "r", ("delta", "delta_low", "delta_high")),
            Column(Text("Holm p", "Holm $p$"), "r", ("holm_p",)),
            Column(Text("Call"), "l", ("call",)),
        ),
        rows=tuple(rows),
        is_wide=True,
        status=status_of(every),
    )


def _first_of_rule(rows: Sequence[ComparisonRow]) -> list[ComparisonRow]:
    """The first row of every game, budget and rule whose maximum is known."""
    first: dict[tuple[str, str, str, str], ComparisonRow] = {}
    for row in rows:
        if has_scale(row.game, mode=row.mode):
            first.setdefault((row.game, row.mode, row.budget, row.rule), row)
    return list(first.values())


def _published_maximum(findings: Findings, row: ComparisonRow) -> tuple[Cell, ...]:
    maximum = float(score_range(row.game, mode=row.mode)[1])
    return (
        text_cell(findings.name(findings.env_of(row))),
        text_cell(row.budget),
        text_cell(row.rule),
        text_cell("R_max", tex=r"$R_{\max}$"),
        mean_sem(maximum, NAN),
        mean_sem(row.mean, row.sem),
        estimate(row.mean - maximum, NO_PAIR),
        empty_cell(),
        empty_cell(),
    )
