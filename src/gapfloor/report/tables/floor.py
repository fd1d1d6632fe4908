"""The tables that compare returns with the floor: unmask, floor, merged_argmax."""

from __future__ import annotations

from gapfloor.analysis.rows import ComparisonRow, Row
from gapfloor.report.findings import MERGED, TEST, TRAIN, Env, Findings, rule_title
from gapfloor.report.tables.wording import (
    FLOOR_WORDS,
    at_budget,
    draws_phrase,
    floor_phrase,
    left_out,
    on_same_draws,
    runs_phrase,
    sentence,
    status_of,
    suffix,
)
from gapfloor.tables.cells import (
    Cell,
    call_cell,
    estimate,
    fixed,
    integer,
    mean_sem,
    missing_cell,
    percent,
    text_cell,
)
from gapfloor.tables.table import Column, ColumnGroup, Missing, RuleLine, Table, Text


def unmask(findings: Findings, budget: str) -> Table | Missing:
    """Held-out returns under both rules against the floor."""
    name = suffix(findings, "unmask", budget)
    title = f"Held-out return against the floor{at_budget(budget)}"
    envs = findings.envs(budget)
    played = [env for env in envs if findings.comparison(env, budget, findings.primary, TEST)]
    if not played:
        return Missing(name, title, f"no {findings.primary} held-out episodes with a floor on the same draws")
    firsts = [_found(findings.comparison(env, budget, findings.primary, TEST)) for env in played]
    runs = {row.n for row in firsts}
    words = FLOOR_WORDS[findings.plan.floor_method]
    over = str(runs.pop()) if len(runs) == 1 else "n"
    columns = [
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Floor"), "r", ("floor", "floor_sem")),
        *_rule_columns(findings.primary, over, delta=words.header),
    ]
    groups = [ColumnGroup(Text(f"{rule_title(findings.primary)} (primary)"), 2, 6)]
    second = findings.secondary
    seconds = {env: findings.comparison(env, budget, second, TEST) if second else None for env in played}
    if second and any(seconds.values()):
        groups.append(ColumnGroup(Text(rule_title(second)), 7, 10))
        columns += _rule_columns(second, over)
    else:
        second = None
    rows = []
    for env, row in zip(played, firsts, strict=True):
        cells = [text_cell(findings.name(env)), mean_sem(row.floor, row.floor_sem)]
        cells += _rule_cells(row, over, with_delta=True)
        if second:
            other = seconds[env]
            cells += (
                _rule_cells(other, over, with_delta=False)
                if other
                else [missing_cell(2), missing_cell(), missing_cell(), missing_cell()]
            )
        rows.append(tuple(cells))
    shown = [*firsts, *(row for row in seconds.values() if row)]
    calls = {row.call for row in shown}
    caption = sentence(
        "Return on held-out levels{budget} and a uniform-random floor{draws_of_floor}. Returns: "
        "mean ± SEM over {runs}, each run the mean of {draws}. Floor: mean ± SEM per episode ({floor}). Δ: "
        "{rule} return minus floor with {interval}. Call: {call}, equiv. if TOST passes, n.d. (not "
        "distinguishable) otherwise{untested}. Descriptive: z and the number of runs above the floor.",
        budget=at_budget(budget),
        draws_of_floor=on_same_draws(findings),
        runs=runs_phrase(firsts),
        draws=draws_phrase(findings),
        floor=floor_phrase(findings),
        rule=findings.primary,
        interval=words.interval.format(least=findings.plan.least_runs),
        call=words.call.format(alpha=f"{findings.plan.alpha:g}"),
        untested=", n.t. if nothing was tested" if "not tested" in calls else "",
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        groups=tuple(groups),
        is_wide=True,
        notes=left_out(findings, [env for env in envs if env not in played], "held-out episodes or a floor"),
        status=status_of(shown),
    )


def floor(findings: Findings) -> Table | Missing:
    """Floor and pooled returns on both level sets at every budget."""
    title = "Floor and returns on both level sets"
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    rows: list[tuple[Cell, ...] | RuleLine] = []
    every: list[Row] = []
    for budget in findings.budgets:
        block: list[tuple[Cell, ...]] = []
        for env in findings.envs(budget):
            found = {
                (rule, level_set): findings.comparison(env, budget, rule, level_set)
                for rule in rules
                for level_set in (TRAIN, TEST)
            }
            label = f"{findings.name(env)} ({budget})" if budget else findings.name(env)
            for level_set in (TRAIN, TEST):
                here = [found[rule, level_set] for rule in rules]
                reference = next((row for row in here if row), None)
                if reference is None:
                    continue
                every += [row for row in here if row]
                # The name is printed on a game's first row only; CSV repeats it on every row.
                shown = text_cell(label) if level_set == TRAIN else Cell("", "", (label,))
                block.append(
                    (
                        shown,
                        text_cell(level_set),
                        mean_sem(reference.floor, reference.floor_sem),
                        *(mean_sem(row.mean, row.sem) if row else missing_cell(2) for row in here),
                        *(call_cell(row.call if row else None) for row in here),
                    )
                )
        if block and rows:
            rows.append(RuleLine("midrule"))
        rows += block
    if not rows:
        return Missing("floor", title, "no floor on the draws that the runs were played on")
    caption = sentence(
        "Uniform-random floor and returns{over_agents} on both level sets and at every budget{draws_of_floor}. Floor ± "
        "SEM per episode ({floor}); returns ± SEM over runs. Calls as in the table of held-out returns.",
        floor=floor_phrase(findings),
        over_agents=findings.over_agents,
        draws_of_floor=on_same_draws(findings),
    )
    return Table(
        name="floor",
        title=title,
        caption=caption,
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Levels"), "l", ("levels",)),
            Column(Text("Floor"), "r", ("floor", "floor_sem")),
            *(Column(Text(rule_title(rule)), "r", (rule, f"{rule}_sem")) for rule in rules),
            *(Column(Text(f"{rule_title(rule)} call"), "l", (f"{rule}_call",)) for rule in rules),
        ),
        rows=tuple(rows),
        size="scriptsize",
        separation="3pt",
        status=status_of(every),
    )


def merged_argmax(findings: Findings, budget: str) -> Table | Missing:
    """Merged argmax against plain argmax, sampling and the floor on held-out levels."""
    name = suffix(findings, "merged_argmax", budget)
    title = f"Merged argmax{at_budget(budget)}"
    rules = [rule for rule in (findings.secondary, MERGED, findings.primary) if rule]
    rows: list[tuple[Cell, ...]] = []
    every: list[Row] = []
    without: list[Env] = []
    for env in findings.envs(budget):
        merged = findings.comparison(env, budget, MERGED, TEST)
        if merged is None:
            without.append(env)
            continue
        every.append(merged)
        found = [findings.comparison(env, budget, rule, TEST) for rule in rules]
        pair = findings.pair(env, budget, MERGED, "greedy", "test")
        disagreement = findings.disagreement(env, budget, MERGED, TEST)
        rows.append(
            (
                text_cell(findings.name(env)),
                fixed(merged.floor),
                *(mean_sem(row.mean, row.sem) if row else missing_cell(2) for row in found),
                call_cell(merged.call),
                fixed(pair.difference.value, sign=True) if pair else missing_cell(),
                percent(disagreement.share) if disagreement else missing_cell(),
            )
        )
    if not rows:
        return Missing(name, title, "no episodes under the merged rule")
    caption = sentence(
        "{exploratory}held-out return under merged argmax{budget}, plain argmax (greedy) and sampling, and the "
        "floor{draws_of_floor} (mean ± SEM over {runs}). Merged call: Holm within this analysis "
        "alone. Merged − greedy: paired difference over runs. Disagree.: share of counted steps on which "
        "merged argmax chooses another class than plain argmax.",
        draws_of_floor=on_same_draws(findings),
        exploratory="Exploratory: " if status_of(every) else "Addendum to the plan: ",
        budget=at_budget(budget),
        runs=runs_phrase(every),
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Floor"), "r", ("floor",)),
            *(Column(Text(rule_title(rule)), "r", (rule, f"{rule}_sem")) for rule in rules),
            Column(Text("Merged call"), "l", ("merged_call",)),
            Column(Text("Merged−greedy", r"Merged$-$greedy"), "r", ("merged_minus_greedy",)),
            Column(Text("Disagree."), "r", ("disagreement",)),
        ),
        rows=tuple(rows),
        notes=left_out(findings, without, "merged-rule episodes") if rows else (),
        separation="4pt",
        status=status_of(every),
    )


def _rule_columns(rule: str, over: str, *, delta: Text | None = None) -> list[Column]:
    columns = [Column(Text("Return"), "r", (rule, f"{rule}_sem"))]
    if delta is not None:
        columns.append(Column(delta, "r", (f"{rule}_delta", f"{rule}_delta_low", f"{rule}_delta_high")))
    columns.append(Column(Text("Call"), "l", (f"{rule}_call",)))
    columns.append(Column(Text("z", "$z$"), "r", (f"{rule}_z",)))
    header = Text(f"k/{over}", f"$k$/{over}" if over != "n" else "$k$/$n$")
    names = (f"{rule}_runs_above",) if over != "n" else (f"{rule}_runs_above", f"{rule}_runs")
    columns.append(Column(header, "r", names))
    return columns


def _rule_cells(row: ComparisonRow, over: str, *, with_delta: bool) -> list[Cell]:
    cells = [mean_sem(row.mean, row.sem)]
    if with_delta:
        cells.append(estimate(row.delta.value, row.delta.interval))
    k = integer(row.runs_above)
    if over == "n":
        of_runs = f"{row.runs_above}/{row.n}"
        k = Cell(of_runs, of_runs, (row.runs_above, row.n))
    return [*cells, call_cell(row.call), fixed(row.z, 1, sign=True), k]


def _found(row: ComparisonRow | None) -> ComparisonRow:
    assert row is not None
    return row
