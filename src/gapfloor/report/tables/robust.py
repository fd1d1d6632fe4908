"""The second table beside a paper table: estimators that hold where the pre-specified ones are weak.

They never replace a column of the paper; each says what it estimates (these levels, or the generator of levels).
A table whose every entry is empty is not made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gapfloor.analysis.floor_results import FloorComparisonResult
from gapfloor.analysis.gap_results import GapResult
from gapfloor.analysis.row import Row
from gapfloor.report.findings import FLOOR, MERGED, TEST, TRAIN, Env, Findings, agent_name
from gapfloor.report.formats import (
    Cell,
    call_cell,
    estimate,
    fixed,
    interval,
    is_number,
    p_value,
    percent,
    text_cell,
)
from gapfloor.report.table import Column, Rule, Table, Text
from gapfloor.report.tables.wording import at_budget, sentence, slug, status_of, suffix

_P = "p"


def beside_unmask(findings: Findings, budget: str) -> Table | None:
    """Beside unmask: t interval, sign flip, agents as strata, power, and whether equivalence can be reached."""
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for env in findings.envs(budget):
        for row in _comparisons(findings, env, budget, (TEST,)):
            robust, strata = row.robust, row.robust.stratified_decision
            every.append(row)
            rows.append(
                (
                    text_cell(findings.name(env)),
                    text_cell(row.rule),
                    estimate(row.test.delta, row.test.t_interval),
                    p_value(robust.sign_flip.p),
                    p_value(robust.sign_flip.smallest),
                    p_value(strata.p_holm if strata else math.nan),
                    call_cell(strata.call if strata else None),
                    fixed(robust.floor_sem_clustered),
                    fixed(robust.minimum_detectable),
                    text_cell("no" if robust.equivalence_unreachable else "yes"),
                )
            )
    columns = (
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Rule"), "l", ("rule",)),
        Column(Text("Δ [t interval]", r"$\Delta$ [$t$ interval]"), "r", ("delta", "t_low", "t_high")),
        Column(Text("Sign flip p", "Sign flip $p$"), "r", ("sign_flip_p",)),
        Column(Text("smallest"), "r", ("sign_flip_smallest_p",)),
        Column(Text("Strata p (Holm)", "Strata $p$ (Holm)"), "r", ("stratified_holm_p",)),
        Column(Text("Strata call"), "l", ("stratified_call",)),
        Column(Text("Floor SEM (levels)"), "r", ("floor_sem_clustered",)),
        Column(Text("80% power"), "r", ("minimum_detectable",)),
        Column(Text("Equiv. in reach"), "l", ("equivalence_reachable",)),
    )
    caption = sentence(
        "Beside the held-out table{budget}: Δ with Welch's t interval, exact sign-flip p of the runs (and "
        "the smallest it can reach at this number of runs), the test with agents as strata, the floor's "
        "SEM with episodes clustered by level, the smallest difference found with 80% power at the hardest "
        "Holm step, and whether the floor's own error lets TOST pass at all. Estimand: these levels; "
        "clustered SEM: the generator of levels.",
        budget=at_budget(budget),
    )
    return _table(
        suffix(findings, "unmask", budget),
        f"held-out return{at_budget(budget)}",
        caption,
        columns,
        rows,
        every,
    )


def beside_floor(findings: Findings) -> Table | None:
    """Beside floor: crossed and level-paired differences, IQM and probability of improvement."""
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for budget in findings.budgets:
        for env in findings.envs(budget):
            for row in _comparisons(findings, env, budget, (TRAIN, TEST)):
                robust = row.robust
                every.append(row)
                label = f"{findings.name(env)} ({budget})" if budget else findings.name(env)
                rows.append(
                    (
                        text_cell(label),
                        text_cell(row.level_set),
                        text_cell(row.rule),
                        interval(robust.crossed.interval),
                        p_value(robust.crossed.p),
                        percent(robust.level_variance_share),
                        fixed(robust.level_paired.estimate, sign=True),
                        p_value(robust.level_paired.p),
                        estimate(robust.iqm.value, robust.iqm.ci, sign=False),
                        estimate(robust.improvement.value, robust.improvement.ci, sign=False),
                    )
                )
    columns = (
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Levels"), "l", ("levels",)),
        Column(Text("Rule"), "l", ("rule",)),
        Column(
            Text("Crossed interval of Δ", r"Crossed interval of $\Delta$"),
            "r",
            ("crossed_low", "crossed_high"),
        ),
        Column(Text("Crossed p", "Crossed $p$"), "r", ("crossed_p",)),
        Column(Text("Level share"), "r", ("level_variance_share",)),
        Column(Text("Level-paired Δ", r"Level-paired $\Delta$"), "r", ("level_paired_delta",)),
        Column(Text(_P, "$p$"), "r", ("level_paired_p",)),
        Column(Text("IQM [95% CI]"), "r", ("iqm", "iqm_low", "iqm_high")),
        Column(
            Text("P(> floor) [95% CI]", r"$P(>\text{floor})$ [95\% CI]"),
            "r",
            ("p_improvement", "p_improvement_low", "p_improvement_high"),
        ),
    )
    caption = sentence(
        "Beside the floor table, for claims about the generator of levels: runs × levels interval and p of "
        "Δ, the share of episode variance that lies between levels, Δ with each level's floor subtracted "
        "from the same level's return, and, on these levels, the interquartile mean of runs and the "
        "probability that an episode beats a floor episode (ties half)."
    )
    return _table("floor", "floor and returns", caption, columns, rows, every, size="tiny")


def beside_gap(findings: Findings, budget: str) -> Table | None:
    """Beside a gap table: the sounder estimators of one budget."""
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for env in findings.envs(budget):
        for row in _gaps(findings, env, budget):
            every.append(row)
            rows.append((text_cell(findings.name(env)), text_cell(row.rule), *_gap_cells(row)))
    columns = (
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Rule"), "l", ("rule",)),
        *_gap_columns(),
    )
    return _table(
        f"gap{slug(budget)}",
        f"gap{at_budget(budget)}",
        _gap_caption(budget),
        columns,
        rows,
        every,
        size="scriptsize",
    )


def beside_pooled(findings: Findings) -> Table | None:
    """Beside pooled: the same, over budgets."""
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for env in findings.all_envs:
        budgets = findings.budgets_of(env)
        for budget in budgets if len(budgets) > 1 else ():
            for row in _gaps(findings, env, budget):
                every.append(row)
                rows.append(
                    (
                        text_cell(findings.name(env)),
                        text_cell(budget),
                        text_cell(row.rule),
                        *_gap_cells(row),
                    )
                )
    columns = (
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Budget"), "l", ("budget",)),
        Column(Text("Rule"), "l", ("rule",)),
        *_gap_columns(),
    )
    return _table("pooled", "gap across budgets", _gap_caption(""), columns, rows, every, size="scriptsize")


def beside_merged_argmax(findings: Findings, budget: str) -> Table | None:
    """Beside merged_argmax: the paired difference with its p, corrected and exact."""
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for env in findings.envs(budget):
        pair = findings.pair(env, budget, MERGED, "greedy", "test")
        if pair is None:
            continue
        every.append(pair)
        rows.append(
            (
                text_cell(findings.name(env)),
                estimate(pair.test.difference, pair.test.ci),
                interval(pair.test.t_interval),
                p_value(pair.test.p),
                p_value(pair.robust.p_holm),
                p_value(pair.robust.sign_flip.p),
                p_value(pair.robust.sign_flip.smallest),
            )
        )
    columns = (
        Column(Text("Env"), "l", ("env",)),
        Column(
            Text("Merged−greedy [95% CI]", r"Merged$-$greedy [95\% CI]"), "r", ("difference", "low", "high")
        ),
        Column(Text("t interval", "$t$ interval"), "r", ("t_low", "t_high")),
        Column(Text("Paired p", "Paired $p$"), "r", ("p",)),
        Column(Text("Holm p", "Holm $p$"), "r", ("holm_p",)),
        Column(Text("Sign flip p", "Sign flip $p$"), "r", ("sign_flip_p",)),
        Column(Text("smallest"), "r", ("sign_flip_smallest_p",)),
    )
    caption = sentence(
        "Beside merged argmax{budget}: the paired difference with bootstrap and t intervals, its p over "
        "runs, corrected over games by Holm, and the exact sign-flip p. Estimand: these levels.",
        budget=at_budget(budget),
    )
    return _table(
        suffix(findings, "merged_argmax", budget),
        f"merged argmax{at_budget(budget)}",
        caption,
        columns,
        rows,
        every,
    )


def beside_agents(findings: Findings, budget: str, *, name: str) -> Table | None:
    """Beside a per-agent table: differences between agents."""
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for env in findings.envs(budget):
        for rule in (findings.primary, findings.secondary):
            for quantity in ("train", "test", "gap") if rule else ():
                for row in findings.differences(env, budget, rule or "", quantity):
                    every.append(row)
                    pair = f"{agent_name(row.agent_a)} − {agent_name(row.agent_b)}"
                    rows.append(
                        (
                            text_cell(findings.name(env)),
                            text_cell(row.rule),
                            text_cell(row.quantity),
                            text_cell(pair),
                            estimate(row.test.difference, row.test.ci),
                            interval(row.test.t_interval),
                            p_value(row.test.p),
                            p_value(row.p_draw_min),
                            p_value(row.p_draw_max),
                        )
                    )
    columns = (
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Rule"), "l", ("rule",)),
        Column(Text("Quantity"), "l", ("quantity",)),
        Column(Text("Difference of"), "l", ("pair",)),
        Column(Text("Estimate [95% CI]"), "r", ("difference", "low", "high")),
        Column(Text("t interval", "$t$ interval"), "r", ("t_low", "t_high")),
        Column(Text("Welch p", "Welch $p$"), "r", ("p",)),
        Column(Text("one draw: min", "one draw: min"), "r", ("p_draw_min",)),
        Column(Text("max"), "r", ("p_draw_max",)),
    )
    caption = sentence(
        "Beside the per-agent table{budget}: differences between agents, Welch over runs, and the smallest "
        "and largest p when the draws are taken one at a time. Estimand: these levels; not corrected for "
        "the number of comparisons.",
        budget=at_budget(budget),
    )
    return _table(
        name,
        f"differences between agents{at_budget(budget)}",
        caption,
        columns,
        rows,
        every,
        size="scriptsize",
    )


def beside_cobbe(findings: Findings) -> Table | None:
    """Beside cobbe: interquartile means of normalised run scores."""
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for profile in findings.results.profiles:
        every.append(profile)
        rows.append(
            (
                text_cell(profile.budget),
                text_cell("floor" if profile.rule == FLOOR else profile.rule),
                text_cell(profile.level_set),
                estimate(profile.profile.iqm, profile.profile.iqm_ci, sign=False),
                fixed(profile.p_improvement),
            )
        )
    columns = (
        Column(Text("Budget"), "l", ("budget",)),
        Column(Text("Rule"), "l", ("rule",)),
        Column(Text("Levels"), "l", ("levels",)),
        Column(Text("IQM [95% CI]"), "r", ("iqm", "iqm_low", "iqm_high")),
        Column(Text("P(> floor)", r"$P(>\text{floor})$"), "r", ("p_improvement",)),
    )
    caption = sentence(
        "Beside the normalised scores: interquartile mean of run scores over all games, with an interval "
        "that resamples runs within games, and the mean over games of the probability that an episode "
        "beats a floor episode."
    )
    return _table("cobbe", "normalised scores", caption, columns, rows, every)


def _comparisons(
    findings: Findings, env: Env, budget: str, level_sets: tuple[str, ...]
) -> list[FloorComparisonResult]:
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    found = [findings.comparison(env, budget, rule, level_set) for level_set in level_sets for rule in rules]
    return [row for row in found if row]


def _gaps(findings: Findings, env: Env, budget: str) -> list[GapResult]:
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    return [row for rule in rules if (row := findings.gap(env, budget, rule))]


def _gap_columns() -> tuple[Column, ...]:
    return (
        Column(Text("Gap [t interval]", "Gap [$t$ interval]"), "r", ("gap", "t_low", "t_high")),
        Column(Text("t p", "$t$ $p$"), "r", ("t_p",)),
        Column(Text("Sign flip p", "Sign flip $p$"), "r", ("sign_flip_p",)),
        Column(Text("Crossed interval"), "r", ("crossed_low", "crossed_high")),
        Column(Text(_P, "$p$"), "r", ("crossed_p",)),
        Column(Text("Floor gap"), "r", ("floor_gap",)),
        Column(Text("Excess [interval]"), "r", ("excess", "excess_low", "excess_high")),
        Column(Text(_P, "$p$"), "r", ("excess_p",)),
        Column(Text("New run"), "r", ("prediction_low", "prediction_high")),
    )


def _gap_cells(row: GapResult) -> tuple[Cell, ...]:
    gap, robust = row.gap, row.robust
    return (
        estimate(gap.mean, gap.t_interval),
        p_value(gap.p_t),
        p_value(robust.sign_flip.p),
        interval(robust.crossed.interval),
        p_value(robust.crossed.p),
        fixed(robust.excess.floor_gap, sign=True),
        estimate(robust.excess.estimate, robust.excess.interval),
        p_value(robust.excess.p),
        interval(robust.random_effects.prediction),
    )


def _gap_caption(budget: str) -> Text:
    return sentence(
        "Beside the gap table{budget}: t interval and p over runs and the exact sign flip (these levels, "
        "new runs); runs × levels interval and p (the generator of levels); the floor's own train − test "
        "difference, what is left of the gap when it is taken out (excess), and where the gap of a new run "
        "is expected.",
        budget=at_budget(budget),
    )


def _table(
    name: str,
    title: str,
    caption: Text,
    columns: tuple[Column, ...],
    rows: list[tuple[Cell, ...]],
    every: Iterable[Row],
    *,
    size: str = "scriptsize",
) -> Table | None:
    # Columns that nothing fills are left out; a table of nothing but names is not a table.
    kept = [
        at
        for at, column in enumerate(columns)
        if column.align == "l" or any(is_number(_first(row[at])) for row in rows)
    ]
    if not rows or not any(columns[at].align == "r" for at in kept):
        return None
    dropped = [column.header.plain for at, column in enumerate(columns) if at not in kept]
    body: list[tuple[Cell, ...] | Rule] = [tuple(row[at] for at in kept) for row in rows]
    return Table(
        name=f"{name}_beside",
        title=f"Sounder estimators: {title}",
        caption=caption,
        columns=tuple(columns[at] for at in kept),
        rows=tuple(body),
        notes=(f"Left out, the data do not allow it: {', '.join(dropped)}.",) if dropped else (),
        size=size,  # type: ignore[arg-type]
        separation="2.5pt",
        is_wide=True,
        status=status_of(every),
    )


def _first(cell: Cell) -> float | None:
    value = cell.raw[0]
    return float(value) if isinstance(value, int | float) else None
