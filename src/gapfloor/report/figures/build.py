"""The figures of a report, each described once: what is drawn where, and what it means.

The writers, `print_figure` and `page_figure`, read these descriptions. A builder gives None where the data lack what
its figure needs; `build_figures` adds the budget to names and titles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gapfloor.analysis.rows import ComparisonRow, GapRow, ReturnRow
from gapfloor.report.figures.entropy import entropy_figure, training_figure
from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import (
    FigureSpec,
    GuideLine,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    described_figure,
    interval_of,
    levels_words,
    name_text,
    names_scale,
    padded,
    rules_legend,
)
from gapfloor.report.findings import FLOOR, TEST, TRAIN, Findings, GameFindings, at_budget
from gapfloor.report.source import ReportSource
from gapfloor.tables.cells import counted, estimate, fixed, is_number, mean_sem

#: Ends of a 95% interval, in standard errors of a normal.
_NORMAL_95 = 1.96


def build_figures(source: ReportSource) -> tuple[FigureSpec, ...]:
    """Every figure that the data allow; those of the main budget have plain names and come first."""
    findings = source.findings
    made: list[FigureSpec | None] = []
    for budget in findings.main_first:
        is_main = budget == findings.main_budget
        end = "" if is_main else f"_{findings.slug(budget)}"
        here = (
            returns_figure(findings, budget),
            gaps_figure(findings, budget),
            entropy_figure(findings, budget),
            choices_figure(findings, budget),
        )
        made += [
            replace(figure, name=figure.name + end, title=figure.title + at_budget(budget), is_open=is_main)
            for figure in here
            if figure
        ]
    for budget in dict.fromkeys(curve.budget for curve in source.curves):
        made.append(training_figure(findings, budget, source.curves))
    return tuple(figure for figure in made if figure is not None)


#: Name on the axis and level set -> the row whose mean is drawn there, and what to say about it.
Marks = Mapping[tuple[str, str], tuple[ComparisonRow | ReturnRow, str]]


def returns_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """Return against the floor under every rule, one panel per game."""
    panels = [panel for place in findings.places(budget) if (panel := _returns_of_game(place))]
    return described_figure("returns", panels) if panels else None


def _returns_of_game(place: GameFindings) -> PanelSpec | None:
    marks: dict[tuple[str, str], tuple[ComparisonRow, str]] = {}
    for rule in (rule for rule in place.findings.rules if rule != FLOOR):
        for level_set in (TRAIN, TEST):
            if row := place.comparison(rule, level_set):
                tip = f"{rule}, {levels_words(level_set)}: {_return_words(row, counted(row.n, 'run'))}"
                marks[rule, level_set] = row, tip
    floors = [floor for level_set in (TRAIN, TEST) if (floor := place.floor(level_set))]
    return returns_panel(place.name, floors, marks) if marks else None


def _return_words(row: ComparisonRow, runs: str = "") -> str:
    over = f" over {runs}" if runs else ""
    delta = estimate(row.delta.value, row.delta.interval).plain
    return f"{mean_sem(row.mean, row.sem).plain}{over}; Δ {delta}; {row.call}"


def returns_panel(name: str, floors: Iterable[ReturnRow], marks: Marks) -> PanelSpec:
    """One game: the mean return under each rule next to the floor's."""
    shown = list(dict.fromkeys(rule for rule, _ in marks))
    shapes: list[Shape] = [
        GuideLine(
            at=floor.mean,
            across="y",
            kind="floor" if floor.level_set == TEST else "floor train",
            tip=f"random floor, {levels_words(floor.level_set)}: {mean_sem(floor.mean, floor.sem).plain}",
            band=interval_of(floor.mean, _NORMAL_95 * floor.sem) if floor.level_set == TEST else None,
        )
        for floor in floors
    ]
    shapes += [
        PointMark(
            x=shown.index(rule) + (-0.16 if level_set == TRAIN else 0.16),
            y=row.mean,
            ink=rule_ink(rule),
            tip=tip,
            is_filled=level_set == TEST,
            interval=interval_of(row.mean, row.sem),
        )
        for (rule, level_set), (row, tip) in marks.items()
    ]
    title = name_text(name)
    return PanelSpec(
        title=title,
        summary=f"{title}: return against floor",
        x=Scale(
            low=-0.5,
            high=len(shown) - 0.5,
            ticks=tuple((float(at), name_text(rule)) for at, rule in enumerate(shown)),
            has_names=True,
        ),
        y=Scale.of_shapes(shapes, "y", label="return"),
        shapes=tuple(shapes),
    )


def verdict_strip(place: GameFindings) -> PanelSpec | None:
    """A number line for one verdict: the floor, and each rule's held-out return with the interval of its call."""
    rules = [rule for rule in place.findings.rules if rule != FLOOR]
    rows = [row for rule in rules if (row := place.comparison(rule, TEST))]
    if not rows:
        return None
    floor, band = rows[0].floor, interval_of(rows[0].floor, _NORMAL_95 * rows[0].floor_sem)
    shapes: list[Shape] = [GuideLine(at=floor, across="x", kind="floor", band=band, label="floor")]
    values = [floor]
    for at, row in enumerate(rows):
        # The interval of the call, so that it excludes the floor exactly when the call does.
        low, high = row.delta.interval
        interval = (row.floor + low, row.floor + high) if is_number(low) else None
        values += [row.mean, *(interval or ())]
        tip = f"{row.rule}, held-out: {_return_words(row)}"
        shapes.append(
            PointMark(x=row.mean, y=-float(at), ink=rule_ink(row.rule), tip=tip, interval=interval, along="x")
        )
    low, high = padded(values)
    return PanelSpec(
        summary=f"{place.name}: held-out return against the floor",
        x=Scale(low=low, high=high),
        y=Scale(low=0.4 - len(rows), high=0.6, ticks=()),
        shapes=tuple(shapes),
    )


def gaps_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """Gaps with their intervals next to the floor's own gap, one row per game and rule."""
    rules = findings.two_rules
    games = [
        (place.name, rows)
        for place in findings.places(budget)
        if (rows := [gap for rule in rules if (gap := place.gap(rule))])
    ]
    if not games:
        return None
    shapes: list[Shape] = [GuideLine(at=0.0, across="x", kind="zero")]
    ticks: list[tuple[float, str]] = []
    y = 0.0
    for game, rows in games:
        ticks.append((y - (len(rows) - 1) / 2, name_text(game)))
        if is_number(rows[0].floor_gap):
            span = (y - len(rows) + 0.55, y + 0.45)
            shapes.append(GuideLine(at=rows[0].floor_gap, across="x", kind="floor gap", span=span))
        for gap in rows:
            shapes.append(_gap_mark(game, gap, y))
            y -= 1.0
        y -= 0.5
    n_rows = sum(len(rows) for _, rows in games)
    panel = PanelSpec(
        summary="Gap by game and rule, with the floor's own gap",
        x=Scale.of_shapes(shapes, "x", label="gap: train − test return"),
        y=Scale(low=y + 0.85, high=0.65, ticks=tuple(ticks), has_names=True),
        shapes=tuple(shapes),
    )
    return described_figure(
        "gaps",
        [panel],
        method=findings.plan.method,
        legend=rules_legend(rules),
        size=(380.0, 62.0 + 17.0 * n_rows + 9.0 * len(games)),
        inches=(5.2, 0.8 + 0.2 * n_rows + 0.1 * len(games)),
    )


def _gap_mark(game: str, gap: GapRow, y: float) -> PointMark:
    # What was tested; the gap itself where nothing was.
    shown = gap.estimate.value if is_number(gap.estimate.value) else gap.gap
    floor = f"; floor's own gap {fixed(gap.floor_gap, sign=True).plain}" if is_number(gap.floor_gap) else ""
    size = estimate(shown, gap.estimate.interval).plain
    return PointMark(
        x=shown,
        y=y,
        ink=rule_ink(gap.rule),
        tip=f"{game}, {gap.rule}: gap {size} over {counted(gap.n, 'run')}{floor}",
        interval=gap.estimate.interval if is_number(gap.estimate.low) else None,
        along="x",
    )


def choices_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """The share of other choices under which each call stays, one row per game and quantity."""
    rows = [
        (f"{place.name} {row.quantity}", row)
        for place in findings.places(budget)
        for row in place.rows["sensitivity"]
        if row.rule in findings.two_rules and row.n_choices
    ]
    names = list(dict.fromkeys(name for name, _ in rows))
    if not any(row.flips for _, row in rows):
        return None
    shapes: list[Shape] = [GuideLine(at=1.0, across="x", kind="zero")]
    for name, row in rows:
        at = names.index(name) + (-0.16 if row.rule == findings.primary else 0.16)
        flips = "".join(f"; {flip.choice}: {flip.call}" for flip in row.flips)
        tip = f"{name}, {row.rule}: {row.call} under {row.n_stays} of {row.n_choices}{flips}"
        shapes.append(PointMark(x=row.n_stays / row.n_choices, y=-at, ink=rule_ink(row.rule), tip=tip))
    panel = PanelSpec(
        summary="Share of other choices under which each call stays",
        x=Scale(low=-0.03, high=1.03, label="share of other choices with the same call"),
        y=names_scale(names),
        shapes=tuple(shapes),
    )
    return described_figure("choices", [panel], legend=rules_legend(findings.two_rules), rows=len(names))
