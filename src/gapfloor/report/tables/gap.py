"""The gap's tables: pooled, gap8m (one per budget), gap2x2 (one per game)."""

from __future__ import annotations

from gapfloor.analysis.gap_results import GapResult
from gapfloor.analysis.row import Row
from gapfloor.report.findings import TEST, TRAIN, Env, Findings, rule_title
from gapfloor.report.tables.wording import at_budget, left_out, on_same_draws, sentence, status_of
from gapfloor.tables.cells import (
    Cell,
    estimate,
    fixed,
    integer,
    is_number,
    mean_sem,
    missing_cell,
    p_value,
    text_cell,
)
from gapfloor.tables.table import Column, Missing, RuleLine, Table, Text


def pooled(findings: Findings) -> Table | Missing:
    """The gap of the games that have several budgets, at each."""
    title = "Gap across budgets"
    several = [env for env in findings.all_envs if len(findings.budgets_of(env)) > 1]
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    second = findings.secondary
    for env in several:
        for budget in findings.budgets_of(env):
            first = findings.gap(env, budget, findings.primary)
            other = findings.gap(env, budget, second) if second else None
            if first is None:
                continue
            every += [row for row in (first, other) if row]
            cells = [
                text_cell(findings.name(env)),
                text_cell(budget),
                integer(first.n),
                estimate(first.gap.mean, first.gap.ci),
                p_value(first.gap.p_fisher),
                p_value(first.p_holm),
                fixed(first.gap.stouffer_z),
            ]
            if second:
                cells.append(estimate(other.gap.mean, other.gap.ci) if other else missing_cell(3))
            rows.append(tuple(cells))
    if not rows:
        return Missing("pooled", title, "no game with a gap at more than one budget")
    columns = [
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Budget"), "l", ("budget",)),
        Column(Text("n", "$n$"), "r", ("n",)),
        _gap_column(findings.primary),
        Column(Text("Fisher p", "Fisher $p$"), "r", (f"{findings.primary}_fisher_p",)),
        Column(Text("Holm p", "Holm $p$"), "r", (f"{findings.primary}_holm_p",)),
        Column(Text("Stouffer Z", "Stouffer $Z$"), "r", (f"{findings.primary}_stouffer_z",)),
    ]
    if second:
        columns.append(_gap_column(second))
    caption = sentence(
        "Generalization gap (train − test) of the games trained at several budgets: mean over runs with "
        "its 95% bootstrap interval; per-run Welch tests combined by Fisher (Holm within rule and budget) "
        "and Stouffer."
    )
    return Table(
        name="pooled",
        title=title,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        separation="3pt",
        status=status_of(every),
    )


def gap_at(findings: Findings, budget: str) -> Table | Missing:
    """The gap of every game at one budget (the paper's gap8m)."""
    name = f"gap{findings.slug(budget)}"
    title = f"Gap{at_budget(budget)}"
    second = findings.secondary
    envs = findings.envs(budget)
    found = {env: findings.gap(env, budget, findings.primary) for env in envs}
    if not any(found.values()):
        return Missing(name, title, "no run was played on both level sets")
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for env, first in found.items():
        if first is None:
            continue
        cells = [
            text_cell(findings.name(env)),
            integer(first.n),
            estimate(first.gap.mean, first.gap.ci),
            p_value(first.gap.p_fisher),
            p_value(first.p_holm),
            fixed(first.gap.stouffer_z),
        ]
        every.append(first)
        if second:
            other = findings.gap(env, budget, second)
            cells += _second_cells(other)
            every += [other] if other else []
        rows.append(tuple(cells))
    columns = [
        Column(Text("Env"), "l", ("env",)),
        Column(Text("n", "$n$"), "r", ("n",)),
        _gap_column(findings.primary),
        Column(Text("Fisher p", "Fisher $p$"), "r", (f"{findings.primary}_fisher_p",)),
        Column(Text("Holm p", "Holm $p$"), "r", (f"{findings.primary}_holm_p",)),
        Column(Text("Z", "$Z$"), "r", (f"{findings.primary}_stouffer_z",)),
    ]
    if second:
        columns += [
            _gap_column(second),
            Column(Text("Fisher p", "Fisher $p$"), "r", (f"{second}_fisher_p",)),
            Column(Text("Holm p", "Holm $p$"), "r", (f"{second}_holm_p",)),
        ]
    caption = sentence(
        "Generalization gap (train − test){budget}: mean over runs with its 95% bootstrap interval; "
        "per-run Welch tests combined by Fisher (Holm within rule) and Stouffer (Z above zero: train "
        "higher).",
        budget=at_budget(budget),
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        notes=left_out(findings, [env for env, row in found.items() if row is None], "both level sets"),
        size="scriptsize",
        separation="6pt",
        is_wide=True,
        status=status_of(every),
    )


def gap2x2(findings: Findings, env: Env, *, name: str) -> Table | Missing:
    """One game at each of its budgets under both rules, with the floor's own difference."""
    title = f"{findings.name(env)}: both rules, both level sets"
    rows: list[tuple[Cell, ...] | RuleLine] = []
    every: list[Row] = []
    for budget in findings.budgets_of(env):
        found = [
            row
            for rule in (findings.primary, findings.secondary)
            if rule and (row := findings.gap(env, budget, rule))
        ]
        if not found:
            continue
        if rows:
            rows.append(RuleLine("midrule"))
        every += found
        for row in found:
            label = f"{budget} (n={row.n})" if budget else f"n={row.n}"
            tex = rf"{text_cell(budget).tex} ($n{{=}}{row.n}$)" if budget else rf"$n{{=}}{row.n}$"
            rows.append(
                (
                    Cell(label, tex, (budget, row.n)),
                    text_cell(row.rule),
                    mean_sem(row.gap.train, row.gap.train_sem),
                    mean_sem(row.gap.test, row.gap.test_sem),
                    mean_sem(row.gap.mean, row.gap.sem),
                )
            )
        rows += _floor_row(findings, env, budget)
    if not rows:
        return Missing(name, title, "no run was played on both level sets")
    caption = sentence(
        "{game}: the same checkpoints under both rules, pooled over agents (mean ± SEM over runs), with "
        "the uniform-random floor{draws_of_floor}. The floor's gap is its own train − test "
        "difference.",
        game=findings.name(env),
        draws_of_floor=on_same_draws(findings),
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=(
            Column(Text("Budget"), "l", ("budget", "n")),
            Column(Text("Rule"), "l", ("rule",)),
            Column(Text("Train"), "r", ("train", "train_sem")),
            Column(Text("Test"), "r", ("test", "test_sem")),
            Column(Text("Gap"), "r", ("gap", "gap_sem")),
        ),
        rows=tuple(rows),
        separation="6pt",
        status=status_of(every),
    )


def _floor_row(findings: Findings, env: Env, budget: str) -> list[tuple[Cell, ...]]:
    train = findings.floor(env, TRAIN, budget=budget)
    test = findings.floor(env, TEST, budget=budget)
    if train is None or test is None:
        return []
    gap = fixed(train.mean - test.mean, sign=True)
    return [
        (
            Cell("", "", (budget, None)),
            text_cell("uniform floor†", tex=r"uniform floor$^\dagger$", raw="uniform floor"),
            mean_sem(train.mean, train.sem),
            mean_sem(test.mean, test.sem),
            Cell(gap.plain, gap.tex, (gap.raw[0], None)),
        )
    ]


def _gap_column(rule: str) -> Column:
    title = f"{rule_title(rule)} gap [95% CI]"
    return Column(Text(title), "l", (f"{rule}_gap", f"{rule}_gap_low", f"{rule}_gap_high"))


def _second_cells(row: GapResult | None) -> list[Cell]:
    if row is None or not is_number(row.gap.mean):
        return [missing_cell(3), missing_cell(), missing_cell()]
    return [estimate(row.gap.mean, row.gap.ci), p_value(row.gap.p_fisher), p_value(row.p_holm)]
