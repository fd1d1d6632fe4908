"""Return during training as a tracker recorded it, one panel per game, with the floor drawn in."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.rows import ReturnRow
from gapfloor.report.figure_data import SeedCurve
from gapfloor.report.figures.entropy_training import curve_mark, steps_scale
from gapfloor.report.figures.inks import series_ink
from gapfloor.report.figures.model import (
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    Scale,
    Shape,
    name_text,
    padded,
)
from gapfloor.report.findings import TRAIN, Findings, agent_name


def learning_figure(findings: Findings, curves: Sequence[SeedCurve]) -> FigureSpec | None:
    """Curves with a band of one SEM and the floor on training levels; None without curves."""
    if not curves:
        return None
    agents = list(dict.fromkeys(curve.agent for curve in curves))
    games = list(dict.fromkeys(curve.game for curve in curves))
    has_floor = any(_floor(findings, game) is not None for game in games)
    floor_words = " The line is the floor on training levels." if has_floor else ""
    return FigureSpec(
        name="learning",
        title="Return during training",
        caption="As logged during training: mean over seeds, with a band of one SEM where there are several."
        f"{floor_words} The log does not state the action rule.",
        panels=tuple(_panel(findings, [one for one in curves if one.game == game], agents) for game in games),
        legend=(
            *(
                LegendEntry(words=name_text(agent_name(agent)), ink=series_ink(at), is_curve=True)
                for at, agent in enumerate(agents)
            ),
            *((LegendEntry(words="random floor", guide="floor"),) if has_floor else ()),
        ),
        size=(320.0, 220.0),
        inches=(2.3, 2.0),
        columns=3,
    )


def _panel(findings: Findings, curves: Sequence[SeedCurve], agents: Sequence[str]) -> PanelSpec:
    game = curves[0].game
    floor = _floor(findings, game)
    shapes: list[Shape] = [GuideLine(at=floor.mean, across="y", kind="floor")] if floor else []
    marks = [curve_mark(curve, agents, unit="") for curve in curves]
    shapes += marks
    values = [value for mark in marks for value in (*mark.y, *mark.low, *mark.high)]
    low, high = padded(values, include=[floor.mean] if floor else [])
    return PanelSpec(
        title=name_text(game),
        subtitle="" if floor else "no floor of this game is known here",
        summary=f"{name_text(game)}: return during training",
        x=steps_scale(curves),
        y=Scale(low=low, high=high, label="return"),
        shapes=tuple(shapes),
    )


def _floor(findings: Findings, game: str) -> ReturnRow | None:
    """The floor of a game; None if there is none, or one for each of several modes: a log does not name its mode."""
    # Records name a game without the prefix of its engine, e.g. CartPole-v1 for gym:CartPole-v1.
    envs = [env for env in findings.all_envs if env.game in (game, game.partition(":")[2])]
    return findings.floor(envs[0], TRAIN) if len(envs) == 1 else None
