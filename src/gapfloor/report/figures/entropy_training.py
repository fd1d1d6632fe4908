"""Policy entropy during training, one panel per game: the mean over seeds of each agent."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.report.figure_data import SeedCurve
from gapfloor.report.figures.inks import series_ink
from gapfloor.report.figures.model import (
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    Scale,
    Shape,
    name_text,
    nice_ticks,
    padded,
    steps_text,
)
from gapfloor.report.findings import Findings, agent_name


def training_figure(
    findings: Findings, curves: Sequence[SeedCurve], budget: str, *, name: str, title: str
) -> FigureSpec | None:
    """Curves with a band of one SEM; None without training logs of that budget."""
    here = [curve for curve in curves if curve.budget == budget]
    if not here:
        return None
    agents = list(dict.fromkeys(curve.agent for curve in here))
    games = list(dict.fromkeys((curve.game, curve.mode) for curve in here))
    panels = tuple(
        _panel(findings, [curve for curve in here if (curve.game, curve.mode) == game], agents)
        for game in games
    )
    return FigureSpec(
        name=name,
        title=title,
        caption="Mean over seeds, with a band of one SEM where there are several.",
        panels=panels,
        legend=(
            *(
                LegendEntry(words=name_text(agent_name(agent)), ink=series_ink(at), is_curve=True)
                for at, agent in enumerate(agents)
            ),
            LegendEntry(words="cuts of the screen", guide="cut"),
            LegendEntry(words="maximum", guide="maximum"),
        ),
        size=(320.0, 220.0),
        inches=(2.3, 2.0),
        columns=3,
    )


def _panel(findings: Findings, curves: Sequence[SeedCurve], agents: Sequence[str]) -> PanelSpec:
    first = curves[0]
    screen = findings.place(findings.env_of(first), first.budget).screen
    guides = [*findings.plan.cuts, *((screen.maximum,) if screen else ())]
    values = [value for curve in curves for value in curve.mean]
    low, high = padded(values, include=guides)
    shapes: list[Shape] = [GuideLine(at=cut, across="y", kind="cut") for cut in findings.plan.cuts]
    if screen:
        shapes.append(GuideLine(at=screen.maximum, across="y", kind="maximum"))
    shapes += [curve_mark(curve, agents, unit=" nats") for curve in curves]
    name = name_text(first.game)
    counts = tuple(f"{name_text(agent_name(curve.agent))} n = {curve.n}" for curve in curves)
    return PanelSpec(
        title=name,
        subtitle=counts,
        summary=f"{name}: entropy during training",
        x=steps_scale(curves),
        y=Scale(low=low, high=high, label="policy entropy (nats)"),
        shapes=tuple(shapes),
    )


def curve_mark(curve: SeedCurve, agents: Sequence[str], *, unit: str) -> CurveMark:
    """One agent's curve in its colour, with a band of one SEM if there are several seeds."""
    has_band = curve.n > 1
    return CurveMark(
        x=curve.steps,
        y=curve.mean,
        ink=series_ink(agents.index(curve.agent)),
        tip=f"{agent_name(curve.agent)} (n = {curve.n}): {curve.mean[0]:.2f} → {curve.mean[-1]:.2f}{unit}",
        low=tuple(m - e for m, e in zip(curve.mean, curve.sem, strict=True)) if has_band else (),
        high=tuple(m + e for m, e in zip(curve.mean, curve.sem, strict=True)) if has_band else (),
    )


def steps_scale(curves: Sequence[SeedCurve]) -> Scale:
    """Environment steps from zero to the end of the longest curve."""
    end = max(curve.steps[-1] for curve in curves)
    return Scale(
        low=0.0,
        high=end,
        label="environment steps",
        ticks=tuple((tick, steps_text(tick)) for tick in nice_ticks(0.0, end, 4)),
    )
