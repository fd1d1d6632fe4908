"""Figures about actions: entropy raw and merged, and entropy during training."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.rows import ScreenRow
from gapfloor.report.entropy_curves import SeedCurve
from gapfloor.report.figures.inks import series_ink
from gapfloor.report.figures.model import (
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    described_figure,
    name_text,
    names_scale,
    nice_ticks,
)
from gapfloor.report.findings import MERGED, Findings, agent_name, at_budget, steps_text
from gapfloor.tables.cells import fixed, is_number


def entropy_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """Raw entropy next to merged entropy, with the screen's cuts and the maximum, one row per game."""
    rows = [(place.name, place.screen) for place in findings.places(budget) if place.screen]
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
        shapes += _entropy_marks(game, row, -float(at))
    panel = PanelSpec(
        summary="Raw and merged entropy by game",
        x=Scale(low=0.0, high=maximum * 1.03, label="entropy (nats)"),
        y=names_scale([game for game, _ in rows]),
        shapes=tuple(shapes),
    )
    return described_figure("entropy", [panel], rows=len(rows))


def _entropy_marks(game: str, row: ScreenRow, y: float) -> list[Shape]:
    raw = row.entropy_probe if is_number(row.entropy_probe) else row.entropy
    lies = f"; {row.share:.0%} of the raw entropy lies on actions with the same effect"
    marks = [
        ("raw entropy", raw, row.tier, "sampled", True, ""),
        ("merged by game", row.merged_game, row.merged_tier_game, MERGED, False, ""),
        (
            "merged by state", row.merged_state, row.merged_tier_state, MERGED, True,
            lies if is_number(row.share) else "",
        ),
    ]  # fmt: skip
    found = [mark for mark in marks if is_number(mark[1])]
    ends = [value for _, value, *_ in found]
    link = GuideLine(at=y, across="y", kind="link", span=(min(ends), max(ends)))
    shapes: list[Shape] = [link] if len(ends) > 1 else []
    for words, value, tier, ink, is_filled, more in found:
        tip = f"{game}: {words} {fixed(value, 3).plain} nats ({tier}){more}"
        shapes.append(PointMark(x=value, y=y, ink=ink, tip=tip, is_filled=is_filled))
    return shapes


def training_figure(findings: Findings, budget: str, curves: Sequence[SeedCurve]) -> FigureSpec:
    """Policy entropy during training, one panel per game: the mean over seeds of each agent."""
    here = [curve for curve in curves if curve.budget == budget]
    agents = list(dict.fromkeys(curve.agent for curve in here))
    games = dict.fromkeys((curve.game, curve.mode) for curve in here)
    return described_figure(
        "entropy_training",
        [
            _training_panel(findings, [curve for curve in here if (curve.game, curve.mode) == game], agents)
            for game in games
        ],
        name=f"entropy_training{findings.slug(budget)}",
        title=f"Entropy during training{at_budget(budget)}",
        legend=[
            LegendEntry(words=name_text(agent_name(agent)), ink=series_ink(at), is_curve=True)
            for at, agent in enumerate(agents)
        ],
    )


def _training_panel(findings: Findings, curves: Sequence[SeedCurve], agents: Sequence[str]) -> PanelSpec:
    first = curves[0]
    screen = findings.place(findings.env_of(first), first.budget).screen
    shapes: list[Shape] = [GuideLine(at=cut, across="y", kind="cut") for cut in findings.plan.cuts]
    shapes += [GuideLine(at=screen.maximum, across="y", kind="maximum")] if screen else []
    for curve in curves:
        shapes.append(
            CurveMark(
                x=curve.steps,
                y=curve.mean,
                ink=series_ink(agents.index(curve.agent)),
                tip=f"{agent_name(curve.agent)} (n = {curve.n}): {curve.mean[0]:.2f} → {curve.mean[-1]:.2f} nats",
                low=curve.low,
                high=curve.high,
            )
        )
    end = max(curve.steps[-1] for curve in curves)
    name = name_text(first.game)
    return PanelSpec(
        title=name,
        subtitle=tuple(f"{name_text(agent_name(curve.agent))} n = {curve.n}" for curve in curves),
        summary=f"{name}: entropy during training",
        x=Scale(
            low=0.0,
            high=end,
            label="environment steps",
            ticks=tuple((tick, steps_text(tick)) for tick in nice_ticks(0.0, end, 4)),
        ),
        y=Scale.of_shapes(shapes, "y", label="policy entropy (nats)"),
        shapes=tuple(shapes),
    )
