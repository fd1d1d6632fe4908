"""The second table to a table of the paper: estimators that hold where the pre-specified ones are weak.

They never replace a column of the paper; each says what it estimates (these levels, or the generator of levels). A
column that nothing fills is left out, and a table without a number is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from gapfloor.report.findings import MERGED, TEST, TRAIN, Env, Findings
from gapfloor.report.formats import Cell, is_number
from gapfloor.report.table import Table, Text
from gapfloor.report.tables import robust_columns
from gapfloor.report.tables.robust_columns import NamedRow, RobustColumn
from gapfloor.report.tables.wording import at_budget, sentence, status_of, suffix


def robust_unmask(findings: Findings, budget: str) -> Table | None:
    """To unmask: t interval, sign flip, agents as strata, power, and whether equivalence can be reached."""
    return _table(
        suffix(findings, "unmask", budget),
        f"held-out return{at_budget(budget)}",
        sentence(
            "Robust estimates for the held-out table{budget}: Δ with Welch's t interval, exact sign-flip p of the "
            "runs (and the smallest it can reach at this number of runs), the test with agents as strata, the floor's "
            "SEM with episodes clustered by level, the smallest difference found with 80% power at the hardest "
            "Holm step, and whether the floor's own error lets TOST pass at all. Estimand: these levels; "
            "clustered SEM: the generator of levels.",
            budget=at_budget(budget),
        ),
        robust_columns.UNMASK,
        (
            NamedRow(findings.name(env), row)
            for env in findings.envs(budget)
            for row in _comparisons(findings, env, budget, (TEST,))
        ),
    )


def robust_floor(findings: Findings) -> Table | None:
    """To floor: crossed and level-paired differences, IQM and probability of improvement."""
    return _table(
        "floor",
        "floor and returns",
        sentence(
            "Robust estimates for the floor table, for claims about the generator of levels: runs × levels interval "
            "and p of Δ, the share of episode variance that lies between levels, Δ with each level's floor subtracted "
            "from the same level's return, and, on these levels, the interquartile mean of runs and the "
            "probability that an episode beats a floor episode (ties count half)."
        ),
        robust_columns.FLOOR_TABLE,
        (
            NamedRow(f"{findings.name(env)} ({budget})" if budget else findings.name(env), row)
            for budget in findings.budgets
            for env in findings.envs(budget)
            for row in _comparisons(findings, env, budget, (TRAIN, TEST))
        ),
        size="tiny",
    )


def robust_gap(findings: Findings, budget: str) -> Table | None:
    """To the gaps of one budget."""
    return _table(
        f"gap{findings.slug(budget)}",
        f"gap{at_budget(budget)}",
        _gap_caption(budget),
        robust_columns.GAP,
        (row for env in findings.envs(budget) for row in _gaps(findings, env, budget)),
    )


def robust_pooled(findings: Findings) -> Table | None:
    """To pooled: the same over budgets."""
    return _table(
        "pooled",
        "gap across budgets",
        _gap_caption(""),
        robust_columns.POOLED,
        (
            row
            for env in findings.all_envs
            if len(findings.budgets_of(env)) > 1
            for budget in findings.budgets_of(env)
            for row in _gaps(findings, env, budget)
        ),
    )


def robust_merged_argmax(findings: Findings, budget: str) -> Table | None:
    """To merged_argmax: the paired difference with its p, corrected and exact."""
    return _table(
        suffix(findings, "merged_argmax", budget),
        f"merged argmax{at_budget(budget)}",
        sentence(
            "Robust estimates for merged argmax{budget}: the paired difference with bootstrap and t intervals, its p "
            "over runs, corrected over games by Holm, and the exact sign-flip p. Estimand: these levels.",
            budget=at_budget(budget),
        ),
        robust_columns.MERGED_ARGMAX,
        (
            NamedRow(findings.name(env), pair)
            for env in findings.envs(budget)
            if (pair := findings.pair(env, budget, MERGED, "greedy", "test"))
        ),
    )


def robust_agents(findings: Findings, budget: str, *, name: str) -> Table | None:
    """To a table of agents: differences between them."""
    return _table(
        name,
        f"differences between agents{at_budget(budget)}",
        sentence(
            "Robust estimates for the table of agents{budget}: differences between agents, Welch over runs, and the "
            "smallest and largest p when the draws are taken one at a time. Estimand: these levels; not corrected for "
            "the number of comparisons.",
            budget=at_budget(budget),
        ),
        robust_columns.AGENTS,
        (
            NamedRow(findings.name(env), row)
            for env in findings.envs(budget)
            for rule in _rules(findings)
            for quantity in ("train", "test", "gap")
            for row in findings.differences(env, budget, rule, quantity)
        ),
    )


def robust_cobbe(findings: Findings) -> Table | None:
    """To cobbe: interquartile means of normalised run scores."""
    return _table(
        "cobbe",
        "normalised scores",
        sentence(
            "Robust estimates for the normalised scores: interquartile mean of run scores over all games, with an "
            "interval that resamples runs within games, and the mean over games of the probability that an episode "
            "beats a floor episode."
        ),
        robust_columns.COBBE,
        (NamedRow("", profile) for profile in findings.results.profiles),
    )


def _rules(findings: Findings) -> list[str]:
    return [rule for rule in (findings.primary, findings.secondary) if rule]


def _comparisons(findings: Findings, env: Env, budget: str, level_sets: tuple[str, ...]) -> Iterator[Any]:
    for level_set in level_sets:
        for rule in _rules(findings):
            if row := findings.comparison(env, budget, rule, level_set):
                yield row


def _gaps(findings: Findings, env: Env, budget: str) -> Iterator[NamedRow]:
    for rule in _rules(findings):
        if row := findings.gap(env, budget, rule):
            yield NamedRow(findings.name(env), row)


def _gap_caption(budget: str) -> Text:
    return sentence(
        "Robust estimates for the gap table{budget}: t interval and p over runs and the exact sign flip (these levels, "
        "new runs); runs × levels interval and p (the generator of levels); the floor's own train − test "
        "difference, and where the gap of a new run is expected.",
        budget=at_budget(budget),
    )


def _table(
    name: str,
    title: str,
    caption: Text,
    columns: tuple[RobustColumn, ...],
    rows: Iterable[NamedRow],
    *,
    size: Literal["scriptsize", "tiny"] = "scriptsize",
) -> Table | None:
    named = list(rows)
    cells = [tuple(column.cell(entry) for column in columns) for entry in named]
    kept = [
        at
        for at, column in enumerate(columns)
        if column.column.align == "l" or any(is_number(_first(row[at])) for row in cells)
    ]
    if not cells or not any(columns[at].column.align == "r" for at in kept):
        return None
    dropped = [column.column.header.plain for at, column in enumerate(columns) if at not in kept]
    return Table(
        name=f"{name}_beside",
        title=f"Robust estimates: {title}",
        caption=caption,
        columns=tuple(columns[at].column for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in cells),
        notes=(f"Left out because the data do not allow it: {', '.join(dropped)}.",) if dropped else (),
        size=size,
        separation="2.5pt",
        is_wide=True,
        status=status_of(entry.row for entry in named),
    )


def _first(cell: Cell) -> float | None:
    value = cell.raw[0]
    return float(value) if isinstance(value, int | float) else None
