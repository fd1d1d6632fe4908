"""Figures of single measurements: a floor, an evaluation, a comparison of two agents, a training log."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.comparison import Comparison, call_words
from gapfloor.analysis.evaluation import Evaluation, FloorMeasurement
from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import (
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    levels_words,
    name_text,
    padded,
)
from gapfloor.report.figures.returns import MeanMark, figure_of_returns, returns_panel
from gapfloor.tables.cells import is_number
from gapfloor.text_tables import with_error


def floor_figure(measured: FloorMeasurement) -> FigureSpec:
    """The return of each reference, one panel per game."""
    games = dict.fromkeys(row.game for row in measured.floors)
    panels = [
        returns_panel(
            game,
            floors={},
            marks={
                (row.reference, row.level_set): MeanMark(
                    row.mean, row.sem, f"{row.reference}, {levels_words(row.level_set)}"
                )
                for row in measured.floors
                if row.game == game
            },
        )
        for game in games
    ]
    return figure_of_returns(
        panels, name="floor", title="Return of references", caption="Bars are one SEM.", has_floor=False
    )


def evaluation_figure(evaluation: Evaluation) -> FigureSpec:
    """Return under each rule next to the floor on the same draws, one panel per game."""
    agents = dict.fromkeys(row.agent for row in evaluation.returns if not row.reference)
    panels = []
    for game in dict.fromkeys(row.game for row in evaluation.returns):
        here = [row for row in evaluation.returns if row.game == game]
        floors = {row.level_set: (row.mean, row.sem) for row in here if row.reference == "uniform"}
        marks = {
            (row.rule if len(agents) < 2 else f"{row.agent} {row.rule}", row.level_set): MeanMark(
                row.mean,
                row.sem,
                f"{row.rule}, {levels_words(row.level_set)}: {with_error(row.mean, row.sem)}",
            )
            for row in here
            if not row.reference
        }
        panels.append(returns_panel(game, floors=floors, marks=marks))
    caption = "Bars are one SEM; the band of the floor is its 95% interval."
    return figure_of_returns(panels, name="evaluation", title="Return against floor", caption=caption)


def comparison_figure(comparison: Comparison) -> FigureSpec:
    """Agent a minus agent b with its interval over runs, one row per game, rule and quantity."""
    shapes: list[Shape] = [GuideLine(at=0.0, across="x", kind="zero")]
    ticks, values = [], [0.0]
    for at, row in enumerate(comparison.rows):
        name = " ".join(part for part in (row.game, row.budget, row.quantity) if part)
        ticks.append((-float(at), name_text(name)))
        ends = row.difference.interval
        values += [row.difference.value, *ends]
        shapes.append(
            PointMark(
                x=row.difference.value,
                y=-float(at),
                ink=rule_ink(row.rule),
                tip=f"{name}, {row.rule}: {call_words(row)}",
                interval=ends if is_number(ends[0]) else None,
                along="x",
            )
        )
    low, high = padded(values)
    rules = dict.fromkeys(row.rule for row in comparison.rows)
    return FigureSpec(
        name="comparison",
        title=f"{comparison.agent_a} minus {comparison.agent_b}",
        caption="Difference in return with its interval over runs.",
        panels=(
            PanelSpec(
                title="",
                summary=f"{comparison.agent_a} minus {comparison.agent_b} by game, rule and quantity",
                x=Scale(low=low, high=high, label=f"{comparison.agent_a} − {comparison.agent_b}, return"),
                y=Scale(low=-len(ticks) + 0.4, high=0.6, ticks=tuple(ticks), has_names=True),
                shapes=tuple(shapes),
            ),
        ),
        legend=tuple(LegendEntry(words=rule, ink=rule_ink(rule)) for rule in rules),
        size=(380.0, 62.0 + 17.0 * len(ticks)),
        inches=(5.2, 0.9 + 0.2 * len(ticks)),
    )


def training_log_figure(run: str, steps: Sequence[int], returns: Sequence[float]) -> FigureSpec:
    """The in-loop mean of a training log, which is not the return of any one checkpoint."""
    low, high = padded(steps)
    bottom, top = padded(returns)
    return FigureSpec(
        name="training_log",
        title=run,
        caption="Mean of the last training episodes while the weights change: not a result.",
        panels=(
            PanelSpec(
                title=name_text(run),
                summary=f"{run}: in-loop return over training",
                x=Scale(low=low, high=high, label="environment steps"),
                y=Scale(low=bottom, high=top, label="in-loop return (not a result)"),
                shapes=(
                    CurveMark(
                        x=tuple(map(float, steps)), y=tuple(returns), ink="train", tip="in-loop return"
                    ),
                ),
            ),
        ),
        size=(380.0, 260.0),
        inches=(4.2, 2.6),
    )
