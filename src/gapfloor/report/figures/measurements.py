"""Figures of single results: a floor, an evaluation, a comparison, a sweep, training curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gapfloor.analysis.checkpoints import Sweep, TrainingCurve, TrainingCurves
from gapfloor.analysis.comparison import Comparison
from gapfloor.analysis.evaluation import Evaluation, FloorMeasurement
from gapfloor.analysis.rows import ComparisonRow, ReturnRow
from gapfloor.report.figures.build import returns_panel
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
    interval_of,
    levels_words,
    name_text,
    names_scale,
    padded,
    rule_ink,
    rules_legend,
)
from gapfloor.statistics.conventions import NAN
from gapfloor.tables.cells import is_number

_GAP_LABEL, _ENTROPY_LABEL = "gap: train − test return", "entropy played (nats)"


def floor_figure(measured: FloorMeasurement) -> FigureSpec:
    """The return of each reference, one panel per game."""
    return _returns_figure("floor", measured.floors, (), lambda row: row.reference)


def evaluation_figure(evaluation: Evaluation) -> FigureSpec:
    """Return under each rule next to the floor on the same draws, one panel per game."""
    played = [row for row in evaluation.returns if not row.reference]
    floors = [row for row in evaluation.returns if row.reference == "uniform"]
    is_one_agent = len({row.agent for row in played}) < 2
    return _returns_figure(
        "evaluation", played, floors, lambda row: row.rule if is_one_agent else f"{row.agent} {row.rule}"
    )


def _returns_figure(
    kind: str, rows: Sequence[ReturnRow], floors: Sequence[ReturnRow], name: Callable[[ReturnRow], str]
) -> FigureSpec:
    panels = []
    for game in dict.fromkeys(row.game for row in (*rows, *floors)):
        marks = {(name(row), row.level_set): (row, "") for row in rows if row.game == game}
        here = {row.level_set: row for row in floors if row.game == game}
        panels.append(returns_panel(game, here.values(), marks))
    return described_figure(kind, panels)


def comparison_figure(comparison: Comparison) -> FigureSpec:
    """Agent a minus agent b with its interval over runs, one row per game, rule and quantity."""
    shapes: list[Shape] = [GuideLine(at=0.0, across="x", kind="zero")]
    names = []
    for at, row in enumerate(comparison.rows):
        names.append(" ".join(part for part in (row.game, row.budget, row.quantity) if part))
        ends = row.difference.interval
        shapes.append(
            PointMark(
                x=row.difference.value,
                y=-float(at),
                ink=rule_ink(row.rule),
                interval=ends if is_number(ends[0]) else None,
                along="x",
            )
        )
    two = f"{comparison.agent_a} minus {comparison.agent_b}"
    panel = PanelSpec(
        x=Scale.of_shapes(shapes, "x", label=f"{comparison.agent_a} − {comparison.agent_b}, return"),
        y=names_scale(names, low=0.4, high=0.6),
        shapes=tuple(shapes),
    )
    rules = dict.fromkeys(row.rule for row in comparison.rows)
    return described_figure("comparison", [panel], title=two, legend=rules_legend(rules), rows=len(names))


def sweep_figure(sweep: Sweep) -> FigureSpec:
    """Return, gap and entropy over temperature; the gap only where both level sets were played."""
    level_sets = [name for name in ("test", "train") if name in sweep.level_sets]
    returns: list[Shape] = []
    entropies: list[Shape] = []
    for name in level_sets:
        rows = sweep.on(name)
        is_filled = name == "test"
        # Moved a little, so that the bars of the two level sets do not cover each other.
        shift = 0.008 * sweep.temperatures[-1] * (-1 if is_filled else 1)
        grid = [temperature + shift for temperature in sweep.temperatures]
        returns.append(_floor_guide(rows[0], ink=name))
        returns += _curve(grid, [(row.mean, row.sem) for row in rows], name, is_filled=is_filled)
        entropies += _curve(grid, [(row.entropy_played, NAN) for row in rows], name, is_filled=is_filled)
    shown = {"return": returns}
    if sweep.gaps:
        gaps = [(row.gap, row.gap_sem) for row in sweep.gaps]
        guides = _gap_guides(sweep.gaps[0].floor_gap)
        shown[_GAP_LABEL] = [*guides, *_curve(sweep.temperatures, gaps, "merged")]
    shown[_ENTROPY_LABEL] = entropies
    low, high = padded(sweep.temperatures, part=0.06)
    run = name_text(f"{sweep.run.game}, {sweep.run.name_in_game}")
    return described_figure(
        "sweep",
        _panels(shown, Scale(low=low, high=high, label="temperature (0 greedy, 1 sampled)")),
        title=f"{run}: bars and bands are one SE over levels",
        legend=[
            LegendEntry(words=levels_words(each), ink=each, is_filled=each == "test") for each in level_sets
        ],
    )


def training_curves_figure(result: TrainingCurves) -> FigureSpec:
    """Return, gap and distance from the floor of runs over their training, one row of three panels per run."""
    rules = dict.fromkeys(rule for curve in result.curves for rule in curve.rules)
    panels = [panel for curve in result.curves for panel in _training_panels(curve)]
    return described_figure("training-curve", panels, legend=rules_legend(rules))


def _training_panels(curve: TrainingCurve) -> list[PanelSpec]:
    held_out, training = curve.on("test"), curve.on("train")[0]
    logged = [(step / 1e3, mean) for step, mean in curve.in_loop_curve]
    returns: list[Shape] = [_floor_guide(training)]
    if logged:
        x, y = zip(*logged, strict=True)
        returns.append(CurveMark(x=x, y=y, ink="floor"))
    gaps = _gap_guides(curve.gaps[0].floor_gap)
    deltas: list[Shape] = [GuideLine(at=0.0, across="y", kind="zero")]
    for rule in curve.rules:
        rows = [row for row in curve.gaps if row.rule == rule]
        thousands, ink = [(row.at or 0) / 1e3 for row in rows], rule_ink(rule)
        far = [(row.delta.value, row.delta.se) for row in held_out if row.rule == rule]
        returns += _curve(thousands, [(row.train, row.train_sem) for row in rows], ink)
        gaps += _curve(thousands, [(row.gap, row.gap_sem) for row in rows], ink)
        deltas += _curve(thousands, far, ink)
    low, high = padded(
        [*((row.at or 0) / 1e3 for row in curve.gaps), *(step for step, _ in logged)], part=0.04
    )
    shown = {"return on training levels": returns, _GAP_LABEL: gaps, "held-out return − floor": deltas}
    first, *others = _panels(shown, Scale(low=low, high=high, label="environment steps (thousands)"))
    return [replace(first, title=name_text(curve.name)), *others]


def _panels(shown: Mapping[str, Sequence[Shape]], x: Scale) -> list[PanelSpec]:
    """One panel for each quantity; only an entropy's axis starts at zero."""
    return [
        PanelSpec(
            x=x,
            y=Scale.of_shapes(shapes, "y", label=label, starts_at_zero=label == _ENTROPY_LABEL),
            shapes=tuple(shapes),
        )
        for label, shapes in shown.items()
    ]


def _curve(
    x: Sequence[float], values: Sequence[tuple[float, float]], ink: str, *, is_filled: bool = True
) -> list[Shape]:
    """A line through values, each with a bar of its standard error where it has one."""
    marks = [
        PointMark(x=at, y=value, ink=ink, is_filled=is_filled, interval=interval_of(value, se))
        for at, (value, se) in zip(x, values, strict=True)
    ]
    return [CurveMark(x=tuple(x), y=tuple(value for value, _ in values), ink=ink), *marks]


def _floor_guide(row: ComparisonRow, *, ink: str = "") -> GuideLine:
    """The floor with a band of one standard error."""
    band = interval_of(row.floor, row.floor_sem)
    return GuideLine(at=row.floor, across="y", kind="floor", band=band, ink=ink)


def _gap_guides(floor_gap: float) -> list[Shape]:
    """Zero, and the floor's own gap."""
    return [
        GuideLine(at=0.0, across="y", kind="zero"),
        GuideLine(at=floor_gap, across="y", kind="floor train"),
    ]
