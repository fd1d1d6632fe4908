"""The gap's tables: pooled, gap8m (one per budget), gap2x2 (one per game)."""

from __future__ import annotations

from collections.abc import Callable

from gapfloor.analysis.rows import GapRow, Row
from gapfloor.report.findings import TEST, TRAIN, Env, Findings, rule_title
from gapfloor.report.tables.wording import (
    GAP_WORDS,
    at_budget,
    left_out,
    on_same_draws,
    sentence,
    status_of,
)
from gapfloor.tables.cells import (
    Cell,
    call_cell,
    estimate,
    fixed,
    integer,
    mean_sem,
    missing_cell,
    p_value,
    text_cell,
)
from gapfloor.tables.table import Column, Missing, RuleLine, Table, Text

#: A column, and what its cell is for a gap.
_GapColumn = tuple[Column, Callable[[GapRow], Cell]]


def pooled(findings: Findings) -> Table | Missing:
    """The gap of the games that have several budgets, at each."""
    title = "Gap across budgets"
    several = [env for env in findings.all_envs if len(findings.budgets_of(env)) > 1]
    first, second = _columns(findings, is_pooled=True)
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    for env in several:
        for budget in findings.budgets_of(env):
            found = _gaps(findings, env, budget)
            if found[0] is not None:
                every += [row for row in found if row]
                labels = (text_cell(findings.name(env)), text_cell(budget), integer(found[0].n))
                rows.append((*labels, *_cells(first, found[0]), *_cells(second, found[1])))
    if not rows:
        return Missing("pooled", title, "no game with a gap at more than one budget")
    return Table(
        name="pooled",
        title=title,
        caption=sentence(
            "Generalization gap (train − test) of the games trained at several budgets: " + _words(findings),
            and_budget=" and budget",
            direction="",
        ),
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Budget"), "l", ("budget",)),
            Column(Text("n", "$n$"), "r", ("n",)),
            *(column for column, _ in (*first, *second)),
        ),
        rows=tuple(rows),
        separation="3pt",
        status=status_of(every),
    )


def gap_at(findings: Findings, budget: str) -> Table | Missing:
    """The gap of every game at one budget (the paper's gap8m)."""
    name = f"gap{findings.slug(budget)}"
    title = f"Gap{at_budget(budget)}"
    first, second = _columns(findings)
    found = {env: _gaps(findings, env, budget) for env in findings.envs(budget)}
    every: list[Row] = []
    rows: list[tuple[Cell, ...]] = []
    for env, gaps in found.items():
        if gaps[0] is not None:
            every += [row for row in gaps if row]
            labels = (text_cell(findings.name(env)), integer(gaps[0].n))
            rows.append((*labels, *_cells(first, gaps[0]), *_cells(second, gaps[1])))
    if not rows:
        return Missing(name, title, "no run was played on both level sets")
    return Table(
        name=name,
        title=title,
        caption=sentence(
            "Generalization gap (train − test){budget}: " + _words(findings),
            budget=at_budget(budget),
            and_budget="",
            direction=" (Z above zero: train higher)",
        ),
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("n", "$n$"), "r", ("n",)),
            *(column for column, _ in (*first, *second)),
        ),
        rows=tuple(rows),
        notes=left_out(findings, [env for env, gaps in found.items() if gaps[0] is None], "both level sets"),
        size="scriptsize",
        separation="6pt",
        is_wide=True,
        status=status_of(every),
    )


def _gaps(findings: Findings, env: Env, budget: str) -> list[GapRow | None]:
    """The gaps under the primary and the second rule."""
    return [
        findings.gap(env, budget, rule) if rule else None for rule in (findings.primary, findings.secondary)
    ]


def _cells(columns: list[_GapColumn], row: GapRow | None) -> list[Cell]:
    return [cell(row) if row is not None else missing_cell(len(column.csv)) for column, cell in columns]


def _words(findings: Findings) -> str:
    return GAP_WORDS[findings.plan.gap_method].caption


def _columns(findings: Findings, *, is_pooled: bool = False) -> tuple[list[_GapColumn], list[_GapColumn]]:
    """The columns of the primary rule and of the second one, as the plan's method has them."""
    first, second = findings.primary, findings.secondary
    if findings.plan.gap_method == "recommended":
        return _recommended_columns(first), _recommended_columns(second) if second else []
    stouffer: _GapColumn = (
        Column(
            Text("Stouffer Z", "Stouffer $Z$") if is_pooled else Text("Z", "$Z$"),
            "r",
            (f"{first}_stouffer_z",),
        ),
        lambda row: fixed(row.stouffer_z),
    )
    others = _paper_columns(second) if second else []
    return [*_paper_columns(first), stouffer], others[:1] if is_pooled else others


def _paper_columns(rule: str) -> list[_GapColumn]:
    title = f"{rule_title(rule)} gap [95% CI]"
    return [
        (
            Column(Text(title), "l", (f"{rule}_gap", f"{rule}_gap_low", f"{rule}_gap_high")),
            lambda row: estimate(row.gap, row.estimate.interval),
        ),
        (
            Column(Text("Fisher p", "Fisher $p$"), "r", (f"{rule}_fisher_p",)),
            lambda row: p_value(row.estimate.p),
        ),
        (
            Column(Text("Holm p", "Holm $p$"), "r", (f"{rule}_holm_p",)),
            lambda row: p_value(row.decision.p_adjusted),
        ),
    ]


def _recommended_columns(rule: str) -> list[_GapColumn]:
    return [
        (
            Column(Text(f"{rule_title(rule)} gap"), "r", (f"{rule}_gap", f"{rule}_gap_sem")),
            lambda row: mean_sem(row.gap, row.gap_sem),
        ),
        (
            Column(
                Text("Adjusted [interval]"),
                "r",
                (f"{rule}_adjusted", f"{rule}_adjusted_low", f"{rule}_adjusted_high"),
            ),
            lambda row: estimate(row.estimate.value, row.estimate.interval),
        ),
        (
            Column(Text("Holm p", "Holm $p$"), "r", (f"{rule}_holm_p",)),
            lambda row: p_value(row.decision.p_adjusted),
        ),
        (Column(Text("Call"), "l", (f"{rule}_gap_call",)), lambda row: call_cell(row.call)),
    ]


def gap2x2(findings: Findings, env: Env, *, name: str) -> Table | Missing:
    """One game at each of its budgets under both rules, with the floor's own difference."""
    title = f"{findings.name(env)}: both rules, both level sets"
    rows: list[tuple[Cell, ...] | RuleLine] = []
    every: list[Row] = []
    for budget in findings.budgets_of(env):
        found = [row for row in _gaps(findings, env, budget) if row is not None]
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
                    mean_sem(row.train, row.train_sem),
                    mean_sem(row.test, row.test_sem),
                    mean_sem(row.gap, row.gap_sem),
                )
            )
        rows += _floor_row(findings, env, budget)
    if not rows:
        return Missing(name, title, "no run was played on both level sets")
    caption = sentence(
        "{game}: the same checkpoints under both rules{over_agents} (mean ± SEM over runs), with "
        "the uniform-random floor{draws_of_floor}. The floor's gap is its own train − test "
        "difference.",
        game=findings.name(env),
        over_agents=findings.over_agents,
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
