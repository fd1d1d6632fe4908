"""Gaps with their intervals next to the floor's own gap, one row per game and rule."""

from __future__ import annotations

from gapfloor.analysis.rows import GapRow
from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import (
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    name_text,
    padded,
)
from gapfloor.report.findings import Findings
from gapfloor.tables.cells import estimate, fixed, is_number
from gapfloor.text_tables import counted

_CAPTIONS = {
    "paper": "Train − test return with its 95% bootstrap interval.",
    "recommended": "Train − test return, adjusted for the floor's return on the same levels, with its interval for new "
    "runs on new levels; where nothing was tested, the gap alone.",
}


def gaps_figure(findings: Findings, budget: str, *, name: str, title: str) -> FigureSpec | None:
    """A forest plot; None where no game was played on both level sets."""
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    games = [
        (findings.name(env), rows)
        for env in (place.env for place in findings.places(budget))
        if (rows := [gap for rule in rules if (gap := findings.place(env, budget).gap(rule))])
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
            shapes.append(_mark(game, gap, y))
            y -= 1.0
        y -= 0.5
    n_rows = sum(len(rows) for _, rows in games)
    values = [
        value
        for _, rows in games
        for gap in rows
        for value in (_shown(gap), *gap.estimate.interval, gap.floor_gap)
    ]
    low, high = padded(values, include=[0.0])
    legend = [LegendEntry(words=rule, ink=rule_ink(rule)) for rule in rules]
    return FigureSpec(
        name=name,
        title=title,
        caption=(
            f"{_CAPTIONS[findings.plan.gap_method]} The thick grey line is the difference that random play "
            "itself shows between the two level sets."
        ),
        panels=(
            PanelSpec(
                title="",
                summary="Gap by game and rule, with the floor's own gap",
                x=Scale(low=low, high=high, label="gap: train − test return"),
                y=Scale(low=y + 0.85, high=0.65, ticks=tuple(ticks), has_names=True),
                shapes=tuple(shapes),
            ),
        ),
        legend=(*legend, LegendEntry(words="floor's own gap", guide="floor gap")),
        size=(380.0, 62.0 + 17.0 * n_rows + 9.0 * len(games)),
        inches=(5.2, 0.8 + 0.2 * n_rows + 0.1 * len(games)),
    )


def _shown(gap: GapRow) -> float:
    """What was tested; the gap itself where nothing was."""
    return gap.estimate.value if is_number(gap.estimate.value) else gap.gap


def _mark(game: str, gap: GapRow, y: float) -> PointMark:
    floor_words = (
        f"; floor's own gap {fixed(gap.floor_gap, sign=True).plain}" if is_number(gap.floor_gap) else ""
    )
    size = estimate(_shown(gap), gap.estimate.interval).plain
    return PointMark(
        x=_shown(gap),
        y=y,
        ink=rule_ink(gap.rule),
        tip=f"{game}, {gap.rule}: gap {size} over {counted(gap.n, 'run')}{floor_words}",
        interval=gap.estimate.interval if is_number(gap.estimate.low) else None,
        along="x",
    )
