"""Raw entropy next to merged entropy, with the screen's cuts and the maximum, one row per game."""

from __future__ import annotations

from gapfloor.analysis.rows import ScreenRow
from gapfloor.report.figures.model import (
    FigureSpec,
    GuideLine,
    LegendEntry,
    LinkMark,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    name_text,
)
from gapfloor.report.findings import MERGED, Findings
from gapfloor.tables.cells import fixed, is_number


def entropy_figure(findings: Findings, budget: str, *, name: str, title: str) -> FigureSpec | None:
    """None where no game has cell records."""
    rows = [
        (findings.name(env), row)
        for env in (place.env for place in findings.places(budget))
        if (row := findings.place(env, budget).screen)
    ]
    if not rows:
        return None
    maximum = max(row.maximum for _, row in rows)
    # Games with few actions cannot reach every cut.
    shapes: list[Shape] = [
        GuideLine(at=cut, across="x", kind="cut", label=f"{cut:g}")
        for cut in findings.plan.cuts
        if cut <= maximum
    ]
    shapes.append(GuideLine(at=maximum, across="x", kind="maximum", label="max"))
    for at, (game, row) in enumerate(rows):
        shapes += _row(game, row, -float(at))
    return FigureSpec(
        name=name,
        title=title,
        caption=(
            "Entropy of the action distribution in nats, before and after adding up the probabilities of actions "
            "that have the same effect."
        ),
        panels=(
            PanelSpec(
                title="",
                summary="Raw and merged entropy by game",
                x=Scale(low=0.0, high=maximum * 1.03, label="entropy (nats)"),
                y=Scale(
                    low=0.5 - len(rows),
                    high=0.5,
                    ticks=tuple((-float(at), name_text(game)) for at, (game, _) in enumerate(rows)),
                    has_names=True,
                ),
                shapes=tuple(shapes),
            ),
        ),
        legend=(
            LegendEntry(words="raw", ink="sampled"),
            LegendEntry(words="merged by state", ink=MERGED),
            LegendEntry(words="merged by game", ink=MERGED, is_filled=False),
            LegendEntry(words="cuts of the screen", guide="cut"),
            LegendEntry(words="maximum", guide="maximum"),
        ),
        size=(380.0, 84.0 + 26.0 * len(rows)),
        inches=(5.2, 0.9 + 0.32 * len(rows)),
    )


def _row(game: str, row: ScreenRow, y: float) -> list[Shape]:
    raw = row.entropy_probe if is_number(row.entropy_probe) else row.entropy
    ends = [value for value in (raw, row.merged_state, row.merged_game) if is_number(value)]
    shapes: list[Shape] = [LinkMark(start=min(ends), end=max(ends), y=y)] if len(ends) > 1 else []
    shapes.append(
        PointMark(
            x=raw, y=y, ink="sampled", tip=f"{game}: raw entropy {fixed(raw, 3).plain} nats ({row.tier})"
        )
    )
    if is_number(row.merged_game):
        tip = f"{game}: merged by game {fixed(row.merged_game, 3).plain} nats ({row.merged_tier_game})"
        shapes.append(PointMark(x=row.merged_game, y=y, ink=MERGED, tip=tip, is_filled=False))
    if is_number(row.merged_state):
        tip = f"{game}: merged by state {fixed(row.merged_state, 3).plain} nats ({row.merged_tier_state})"
        if is_number(row.share):
            tip += f"; {row.share:.0%} of the raw entropy lies on actions with the same effect"
        shapes.append(PointMark(x=row.merged_state, y=y, ink=MERGED, tip=tip))
    return shapes
