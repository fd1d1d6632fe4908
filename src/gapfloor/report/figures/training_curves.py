"""Return, gap and distance from the floor of runs over their training, next to the log's running mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import (
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    Scale,
    Shape,
    name_text,
    padded,
)
from gapfloor.report.figures.sweep import curve_shapes, floor_guide, gap_guides, range_of

if TYPE_CHECKING:
    from gapfloor.analysis.training_curves import TrainingCurve, TrainingCurves


def training_curves_figure(result: TrainingCurves) -> FigureSpec:
    """One row of three panels per run."""
    rules = list(dict.fromkeys(rule for curve in result.curves for rule in curve.rules))
    return FigureSpec(
        name="training-curve",
        title="Bars and bands are one SE over levels; the in-loop mean has none of its own",
        caption="Fixed checkpoints of each run, next to the running mean that its training log reports.",
        panels=tuple(panel for curve in result.curves for panel in _panels(curve)),
        legend=(
            *(LegendEntry(words=rule, ink=rule_ink(rule)) for rule in rules),
            LegendEntry(words="in-loop mean", ink="floor", is_curve=True),
            LegendEntry(words="random floor", guide="floor"),
            LegendEntry(words="floor's own gap", guide="floor train"),
        ),
        size=(320.0, 240.0),
        inches=(2.63, 2.3),
        columns=3,
    )


def _panels(curve: TrainingCurve) -> list[PanelSpec]:
    held_out = [row for row in curve.floor_comparisons if row.level_set == "test"]
    returns: list[Shape] = [
        floor_guide(next(row for row in curve.floor_comparisons if row.level_set == "train"))
    ]
    if curve.in_loop_curve:
        steps, means = zip(*curve.in_loop_curve, strict=True)
        returns.append(
            CurveMark(x=tuple(step / 1e3 for step in steps), y=tuple(means), ink="floor", tip="in-loop mean")
        )
    gaps = gap_guides(curve.gaps[0].floor_gap)
    deltas: list[Shape] = [GuideLine(at=0.0, across="y", kind="zero")]
    for rule in curve.rules:
        rows = [row for row in curve.gaps if row.rule == rule]
        thousands, ink = [(row.at or 0) / 1e3 for row in rows], rule_ink(rule)
        far = [(row.delta.value, row.delta.se) for row in held_out if row.rule == rule]
        returns += curve_shapes(thousands, [(row.train, row.train_sem) for row in rows], ink, words=rule)
        gaps += curve_shapes(thousands, [(row.gap, row.gap_sem) for row in rows], ink, words=rule)
        deltas += curve_shapes(thousands, far, ink, words=rule)
    name = name_text(curve.name)
    return [
        _panel(curve, "return on training levels", returns, title=name),
        _panel(curve, "gap: train − test return", gaps),
        _panel(curve, "held-out return − floor", deltas),
    ]


def _panel(curve: TrainingCurve, label: str, shapes: list[Shape], *, title: str = "") -> PanelSpec:
    steps = [(row.at or 0) / 1e3 for row in curve.gaps] + [step / 1e3 for step, _ in curve.in_loop_curve]
    low, high = padded(steps, part=0.04)
    bottom, top = range_of(shapes)
    return PanelSpec(
        title=title,
        summary=f"{curve.name}: {label} over training",
        x=Scale(low=low, high=high, label="environment steps (thousands)"),
        y=Scale(low=bottom, high=top, label=label),
        shapes=tuple(shapes),
    )
