"""Normalised scores with the benchmark's published constants: cobbe."""

from __future__ import annotations

from gapfloor.analysis.rows import ScoreRow
from gapfloor.report.findings import FLOOR, TEST, TRAIN, Findings, rule_title
from gapfloor.report.tables.wording import on_same_draws, sentence, status_of
from gapfloor.statistics.normalised import has_scale, score_range
from gapfloor.tables.cells import Cell, bare, empty_cell, missing_cell, text_cell
from gapfloor.tables.table import Column, ColumnGroup, Missing, RuleLine, Table, Text


def cobbe(findings: Findings) -> Table | Missing:
    """Normalised scores with the benchmark's published constants."""
    title = "Normalised scores"
    columns_of = _score_columns(findings)
    rows: list[tuple[Cell, ...] | RuleLine] = []
    every: list[ScoreRow] = []
    for budget in findings.budgets:
        block: list[tuple[Cell, ...]] = []
        for env in findings.envs(budget):
            found = [findings.normalised(env, budget, rule, levels) for rule, levels in columns_of]
            first = next((row for row in found if row), None)
            if first is None:
                continue
            every += [row for row in found if row]
            block.append(
                (
                    text_cell(findings.name(env)),
                    text_cell(budget),
                    _constants(first),
                    *(bare(row.score) if row else missing_cell() for row in found),
                )
            )
        if block and rows:
            rows.append(RuleLine("midrule"))
        rows += block
    if not rows:
        return Missing("cobbe", title, "no published normalisation constants for these games and modes")
    means: list[tuple[Cell, ...]] = []
    for budget in findings.budgets:
        found = [findings.normalised(None, budget, rule, levels) for rule, levels in columns_of]
        # The floor's mean over training levels is left blank, as in the paper: the floor's level sets are the
        # same whatever the budget, and the table compares held-out scores.
        if any(found):
            means.append(
                (
                    text_cell("mean"),
                    text_cell(budget),
                    empty_cell(2),
                    *(
                        empty_cell()
                        if (rule, levels) == (FLOOR, TRAIN)
                        else (bare(row.score) if row else missing_cell())
                        for row, (rule, levels) in zip(found, columns_of, strict=True)
                    ),
                )
            )
    if means:
        rows += [RuleLine("midrule"), *means]
    groups: list[tuple[str, int, int]] = []
    for at, (rule, _) in enumerate(columns_of):
        label = "Uniform floor" if rule == FLOOR else rule_title(rule)
        if groups and groups[-1][0] == label:
            groups[-1] = (label, groups[-1][1], at + 3)
        else:
            groups.append((label, at + 3, at + 3))
    return Table(
        name="cobbe",
        title=title,
        caption=sentence(
            "Normalised scores, (R − R_min)/(R_max − R_min) of the mean return with {constants}; "
            "the mean is unweighted over games. Floor: uniform-random policy{draws_of_floor}.",
            constants=_origin(every),
            draws_of_floor=on_same_draws(findings),
        ),
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Budget"), "r", ("budget",)),
            Column(Text("R_min, R_max", r"$R_{\min}$, $R_{\max}$"), "r", ("r_min", "r_max")),
            *(
                Column(Text(levels.capitalize()), "r", (f"{'floor' if rule == FLOOR else rule}_{levels}",))
                for rule, levels in columns_of
            ),
        ),
        rows=tuple(rows),
        groups=tuple(ColumnGroup(Text(label), first, last) for label, first, last in groups),
        separation="4pt",
        status=status_of(every),
    )


def _score_columns(findings: Findings) -> list[tuple[str, str]]:
    columns = [(findings.primary, TRAIN), (findings.primary, TEST)]
    if findings.secondary:
        columns.append((findings.secondary, TEST))
    return [*columns, (FLOOR, TRAIN), (FLOOR, TEST)]


def _origin(rows: list[ScoreRow]) -> str:
    """Where the constants come from: published ones, or the floor and an upper reference that the plan states."""
    published = [
        has_scale(row.game, mode=row.mode) and (row.r_min, row.r_max) == score_range(row.game, mode=row.mode)
        for row in rows
    ]
    stated = "the uniform floor of the level set as R_min and the plan's upper reference as R_max"
    if all(published):
        return "the published constants of each game and mode"
    if not any(published):
        return (
            f"{stated} (printed for the training levels)" if TRAIN in {r.level_set for r in rows} else stated
        )
    return f"the published constants of ProcGen's games and modes, elsewhere {stated}"


def _constants(row: ScoreRow) -> Cell:
    text = f"{row.r_min:g}, {row.r_max:g}"
    return Cell(text.replace("-", "−"), text, (row.r_min, row.r_max))
