"""Return, gap and entropy of one checkpoint over temperature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gapfloor.report.figures.model import (
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    interval_of,
    levels_words,
    name_text,
    padded,
)

if TYPE_CHECKING:
    from gapfloor.analysis.rows import ComparisonRow
    from gapfloor.analysis.sweep import Sweep


def sweep_figure(sweep: Sweep) -> FigureSpec:
    """Three panels over temperature; the gap's only where both level sets were played."""
    level_sets = [name for name in ("test", "train") if name in sweep.level_sets]
    panels = [_returns(sweep, level_sets)]
    if sweep.gaps:
        panels.append(_gaps(sweep))
    panels.append(_entropy(sweep, level_sets))
    name = name_text(f"{sweep.run.game}, {sweep.run.name_in_game}")
    return FigureSpec(
        name="sweep",
        title=f"{name}: bars and bands are one SE over levels",
        caption="Return, gap and entropy over temperature (0 is greedy, 1 is sampled).",
        panels=tuple(panels),
        legend=(
            *(
                LegendEntry(words=levels_words(name), ink=name, is_filled=name == "test")
                for name in level_sets
            ),
            LegendEntry(words="random floor", guide="floor"),
        ),
        size=(320.0, 260.0),
        inches=(2.55, 2.5),
        columns=3,
    )


def curve_shapes(
    x: Sequence[float],
    values: Sequence[tuple[float, float]],
    ink: str,
    *,
    words: str,
    is_filled: bool = True,
) -> list[Shape]:
    """A line through values, each with a bar of its standard error."""
    marks = [
        PointMark(
            x=at,
            y=value,
            ink=ink,
            tip=f"{words} at {at:g}: {value:.2f} ± {se:.2f}",
            is_filled=is_filled,
            interval=interval_of(value, se),
        )
        for at, (value, se) in zip(x, values, strict=True)
    ]
    line = CurveMark(x=tuple(x), y=tuple(value for value, _ in values), ink=ink, tip="")
    return [line, *marks]


def floor_guide(row: ComparisonRow, *, ink: str = "", words: str = "random floor") -> GuideLine:
    """The floor with a band of one standard error."""
    return GuideLine(
        at=row.floor,
        across="y",
        kind="floor",
        tip=f"{words}: {row.floor:.2f} ± {row.floor_sem:.2f}",
        band=interval_of(row.floor, row.floor_sem),
        ink=ink,
    )


def gap_guides(floor_gap: float) -> list[Shape]:
    """Zero, and the floor's own gap."""
    return [
        GuideLine(at=0.0, across="y", kind="zero"),
        GuideLine(at=floor_gap, across="y", kind="floor train", tip=f"floor's own gap: {floor_gap:+.2f}"),
    ]


def range_of(shapes: Sequence[Shape], *, include: Sequence[float] = ()) -> tuple[float, float]:
    """The vertical range that these shapes need."""
    values = list(include)
    for shape in shapes:
        if isinstance(shape, PointMark):
            values += [shape.y, *(shape.interval or ())]
        elif isinstance(shape, CurveMark):
            values += shape.y
        elif isinstance(shape, GuideLine) and shape.across == "y":
            values += [shape.at, *(shape.band or ())]
    return padded(values)


def _temperature(sweep: Sweep) -> Scale:
    low, high = padded(sweep.temperatures, part=0.06)
    return Scale(low=low, high=high, label="temperature (0 greedy, 1 sampled)")


def _panel(sweep: Sweep, label: str, shapes: list[Shape], *, include: Sequence[float] = ()) -> PanelSpec:
    low, high = range_of(shapes, include=include)
    return PanelSpec(
        title="",
        summary=f"{label} over temperature",
        x=_temperature(sweep),
        y=Scale(low=0.0 if include else low, high=high, label=label),
        shapes=tuple(shapes),
    )


def _returns(sweep: Sweep, level_sets: Sequence[str]) -> PanelSpec:
    shapes: list[Shape] = []
    for name in level_sets:
        rows = [row for row in sweep.floor_comparisons if row.level_set == name]
        words = levels_words(name)
        shapes.append(floor_guide(rows[0], ink=name, words=f"random floor, {words}"))
        shapes += curve_shapes(
            _shifted(sweep, name),
            [(row.mean, row.sem) for row in rows],
            name,
            words=words,
            is_filled=name == "test",
        )
    return _panel(sweep, "return", shapes)


def _gaps(sweep: Sweep) -> PanelSpec:
    gaps = [(row.gap, row.gap_sem) for row in sweep.gaps]
    shapes = [
        *gap_guides(sweep.gaps[0].floor_gap),
        *curve_shapes(sweep.temperatures, gaps, "merged", words="gap"),
    ]
    return _panel(sweep, "gap: train − test return", shapes)


def _entropy(sweep: Sweep, level_sets: Sequence[str]) -> PanelSpec:
    shapes: list[Shape] = []
    for name in level_sets:
        rows = [row for row in sweep.floor_comparisons if row.level_set == name]
        grid, entropies = _shifted(sweep, name), tuple(row.entropy_played for row in rows)
        shapes.append(CurveMark(x=grid, y=entropies, ink=name, tip=""))
        shapes += [
            PointMark(
                x=at,
                y=entropy,
                ink=name,
                tip=f"{levels_words(name)}: {entropy:.2f} nats",
                is_filled=name == "test",
            )
            for at, entropy in zip(grid, entropies, strict=True)
        ]
    return _panel(sweep, "entropy played (nats)", shapes, include=[0.0])


def _shifted(sweep: Sweep, level_set: str) -> tuple[float, ...]:
    """The grid, moved a little so that the bars of the two level sets do not cover each other."""
    shift = 0.008 * sweep.temperatures[-1] * (-1 if level_set == "test" else 1)
    return tuple(temperature + shift for temperature in sweep.temperatures)
