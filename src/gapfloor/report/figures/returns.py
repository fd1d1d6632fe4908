"""Return against the floor under every rule, one panel per game."""

from __future__ import annotations

from gapfloor.analysis.floor_results import FloorComparisonResult
from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import (
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    interval_of,
    levels_words,
    name_text,
    padded,
)
from gapfloor.report.findings import FLOOR, TEST, TRAIN, Env, Findings
from gapfloor.report.formats import estimate, is_number, mean_sem
from gapfloor.text_tables import counted

#: Ends of a 95% interval, in standard errors of a normal.
_NORMAL_95 = 1.96


def returns_figure(findings: Findings, budget: str, *, name: str, title: str) -> FigureSpec | None:
    """Held-out marks are filled, those of training levels hollow; None where no game has runs."""
    panels = tuple(panel for env in findings.envs(budget) if (panel := _panel(findings, env, budget)))
    if not panels:
        return None
    return FigureSpec(
        name=name,
        title=title,
        caption="Bars are one SEM over runs; the band of the floor is its 95% interval. Scales differ between games.",
        panels=panels,
        legend=(
            LegendEntry(words="held-out levels", ink="floor"),
            LegendEntry(words="training levels", ink="floor", is_filled=False),
            LegendEntry(words="random floor, held-out", guide="floor"),
            LegendEntry(words="random floor, training", guide="floor train"),
        ),
        size=(300.0, 210.0),
        inches=(1.9, 1.75),
        columns=4,
    )


def _panel(findings: Findings, env: Env, budget: str) -> PanelSpec | None:
    rules = [rule for rule in findings.rules if rule != FLOOR]
    rows = {
        (rule, level_set): row
        for rule in rules
        for level_set in (TRAIN, TEST)
        if (row := findings.comparison(env, budget, rule, level_set))
    }
    if not rows:
        return None
    shown = [rule for rule in rules if any(key[0] == rule for key in rows)]
    shapes: list[Shape] = []
    values: list[float] = []
    for level_set in (TRAIN, TEST):
        floor = findings.floor(env, level_set, budget=budget)
        if floor is None:
            continue
        band = interval_of(floor.mean, _NORMAL_95 * floor.sem) if level_set == TEST else None
        values += [floor.mean, *(band or ())]
        shapes.append(
            GuideLine(
                at=floor.mean,
                across="y",
                kind="floor" if level_set == TEST else "floor train",
                tip=f"random floor, {levels_words(level_set)}: {mean_sem(floor.mean, floor.sem).plain}",
                band=band,
            )
        )
    for (rule, level_set), row in rows.items():
        x = shown.index(rule) + (-0.16 if level_set == TRAIN else 0.16)
        interval = interval_of(row.test.mean, row.test.sem)
        values += [row.test.mean, *(interval or ())]
        shapes.append(
            PointMark(
                x=x,
                y=row.test.mean,
                ink=rule_ink(rule),
                tip=_tip(row, rule, level_set),
                is_filled=level_set == TEST,
                interval=interval,
            )
        )
    name = name_text(findings.name(env))
    low, high = padded(value for value in values if is_number(value))
    return PanelSpec(
        title=name,
        summary=f"{name}: return against floor",
        x=Scale(
            low=-0.5,
            high=len(shown) - 0.5,
            ticks=tuple((float(at), name_text(rule)) for at, rule in enumerate(shown)),
            has_names=True,
        ),
        y=Scale(low=low, high=high, label="return"),
        shapes=tuple(shapes),
    )


def _tip(row: FloorComparisonResult, rule: str, level_set: str) -> str:
    value = mean_sem(row.test.mean, row.test.sem).plain
    return (
        f"{rule}, {levels_words(level_set)}: {value} over {counted(row.n, 'run')}; "
        f"Δ {estimate(row.call_delta, row.call_interval).plain}; {row.call}"
    )
