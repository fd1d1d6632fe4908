"""Returns level by level: the runs' mean against the floor's on the same level, one panel per game."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.report.figure_data import LevelPanel, LevelPoint
from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import (
    Diagonal,
    Dot,
    DotCloud,
    FigureSpec,
    LegendEntry,
    PanelSpec,
    Scale,
    name_text,
    padded,
)
from gapfloor.report.findings import Env, Findings
from gapfloor.tables.cells import fixed
from gapfloor.text_tables import counted


def levels_figure(
    findings: Findings, panels: Sequence[LevelPanel], budget: str, *, name: str, title: str
) -> FigureSpec | None:
    """Both axes have the same range, so that the diagonal divides the panel; None without level seeds."""
    here = {
        env: _members(findings, panels, env, budget)
        for env in (place.env for place in findings.places(budget))
    }
    made = tuple(_panel(findings.name(env), members) for env, members in here.items() if members)
    if not made:
        return None
    rules = [
        rule for rule in findings.rules if any(p.rule == rule for members in here.values() for p in members)
    ]
    return FigureSpec(
        name=name,
        title=title,
        caption=(
            "Each dot is one held-out level. Above the diagonal, the runs score more than random play on that level; "
            "the counts say on how many."
        ),
        panels=made,
        legend=tuple(LegendEntry(words=rule, ink=rule_ink(rule)) for rule in rules),
        size=(300.0, 318.0),
        inches=(1.9, 2.1),
        columns=4,
    )


def _members(findings: Findings, panels: Sequence[LevelPanel], env: Env, budget: str) -> list[LevelPanel]:
    members = [panel for panel in panels if (findings.env_of(panel), panel.budget) == (env, budget)]
    return sorted(members, key=lambda panel: findings.rules.index(panel.rule))


def _panel(game: str, members: Sequence[LevelPanel]) -> PanelSpec:
    points = [point for panel in members for point in panel.points]
    low, high = padded((value for point in points for value in (point.floor, point.policy)), part=0.05)
    counts = tuple(f"{panel.rule} above on {panel.above}/{panel.n_levels}" for panel in members)
    name = name_text(game)
    return PanelSpec(
        title=name,
        subtitle=counts,
        summary=f"{name}: {', '.join(counts)} levels",
        x=Scale(low=low, high=high, label="random floor on the level"),
        y=Scale(low=low, high=high, label="runs' mean on the level"),
        shapes=(
            Diagonal(),
            *(
                DotCloud(
                    ink=rule_ink(panel.rule),
                    dots=tuple(Dot(point.floor, point.policy, _tip(panel, point)) for point in panel.points),
                )
                for panel in members
            ),
        ),
    )


def _tip(panel: LevelPanel, point: LevelPoint) -> str:
    return (
        f"level {point.level_seed}, {panel.rule}: {fixed(point.policy).plain} ({counted(point.n, 'episode')}); "
        f"floor {fixed(point.floor).plain} ({counted(point.floor_n, 'episode')})"
    )
