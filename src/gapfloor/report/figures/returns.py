"""Return against the floor under every rule, one panel per game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gapfloor.analysis.rows import ComparisonRow
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
from gapfloor.tables.cells import estimate, is_number, mean_sem
from gapfloor.text_tables import counted

#: Ends of a 95% interval, in standard errors of a normal.
_NORMAL_95 = 1.96


@dataclass(frozen=True)
class MeanMark:
    """A mean return with its standard error, and what to say about it."""

    mean: float
    sem: float
    tip: str


#: (rule, or another name on the axis; level set) -> its mean.
Marks = Mapping[tuple[str, str], MeanMark]


def returns_figure(findings: Findings, budget: str, *, name: str, title: str) -> FigureSpec | None:
    """Held-out marks are filled, those of training levels hollow; None where no game has runs."""
    panels = tuple(
        panel
        for env in (place.env for place in findings.places(budget))
        if (panel := _panel(findings, env, budget))
    )
    if not panels:
        return None
    caption = (
        "Bars are one SEM over runs; the band of the floor is its 95% interval. Scales differ between games."
    )
    return figure_of_returns(panels, name=name, title=title, caption=caption)


def figure_of_returns(
    panels: Sequence[PanelSpec], *, name: str, title: str, caption: str, has_floor: bool = True
) -> FigureSpec:
    """Panels of `returns_panel` with what their marks mean."""
    floors = (
        LegendEntry(words="random floor, held-out", guide="floor"),
        LegendEntry(words="random floor, training", guide="floor train"),
    )
    return FigureSpec(
        name=name,
        title=title,
        caption=caption,
        panels=tuple(panels),
        legend=(
            LegendEntry(words="held-out levels", ink="floor"),
            LegendEntry(words="training levels", ink="floor", is_filled=False),
            *(floors if has_floor else ()),
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
        if (row := findings.place(env, budget).comparison(rule, level_set))
    }
    if not rows:
        return None
    floors = {
        level_set: (floor.mean, floor.sem)
        for level_set in (TRAIN, TEST)
        if (floor := findings.floor(env, level_set, budget=budget))
    }
    marks = {place: MeanMark(row.mean, row.sem, _tip(row, *place)) for place, row in rows.items()}
    return returns_panel(findings.name(env), floors=floors, marks=marks)


def returns_panel(name: str, *, floors: Mapping[str, tuple[float, float]], marks: Marks) -> PanelSpec:
    """One game: the mean return under each rule next to the floor's; `floors` is level set -> mean and SEM."""
    shown = list(dict.fromkeys(rule for rule, _ in marks))
    shapes: list[Shape] = []
    values: list[float] = []
    for level_set, (mean, sem) in floors.items():
        band = interval_of(mean, _NORMAL_95 * sem) if level_set == TEST else None
        values += [mean, *(band or ())]
        shapes.append(
            GuideLine(
                at=mean,
                across="y",
                kind="floor" if level_set == TEST else "floor train",
                tip=f"random floor, {levels_words(level_set)}: {mean_sem(mean, sem).plain}",
                band=band,
            )
        )
    for (rule, level_set), mark in marks.items():
        interval = interval_of(mark.mean, mark.sem)
        values += [mark.mean, *(interval or ())]
        shapes.append(
            PointMark(
                x=shown.index(rule) + (-0.16 if level_set == TRAIN else 0.16),
                y=mark.mean,
                ink=rule_ink(rule),
                tip=mark.tip,
                is_filled=level_set == TEST,
                interval=interval,
            )
        )
    title = name_text(name)
    low, high = padded(value for value in values if is_number(value))
    return PanelSpec(
        title=title,
        summary=f"{title}: return against floor",
        x=Scale(
            low=-0.5,
            high=len(shown) - 0.5,
            ticks=tuple((float(at), name_text(rule)) for at, rule in enumerate(shown)),
            has_names=True,
        ),
        y=Scale(low=low, high=high, label="return"),
        shapes=tuple(shapes),
    )


def _tip(row: ComparisonRow, rule: str, level_set: str) -> str:
    value = mean_sem(row.mean, row.sem).plain
    return (
        f"{rule}, {levels_words(level_set)}: {value} over {counted(row.n, 'run')}; "
        f"Δ {estimate(row.delta.value, row.delta.interval).plain}; {row.call}"
    )
