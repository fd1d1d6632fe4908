"""The figures of a sweep and of a run over its training, in the style of the report's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gapfloor.report.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, STYLE, save_figure
from gapfloor.statistics.level_means import LevelContrast

if TYPE_CHECKING:
    from gapfloor.analysis.sweep import Sweep
    from gapfloor.analysis.training_curves import TrainingCurve, TrainingCurves

_RULES = {"sampled": (BLUE, "o", "-"), "greedy": (ORANGE, "s", "--"), "merged": (PURPLE, "D", "-.")}


def write_sweep(sweep: Sweep, folder: Path) -> list[Path]:
    """Return, gap and entropy against temperature: PDF, SVG and PNG."""
    return _write(lambda: draw_sweep(sweep), folder, "sweep")


def write_training_curves(result: TrainingCurves, folder: Path) -> list[Path]:
    """Return, gap and delta over training: PDF, SVG and PNG."""
    return _write(lambda: draw_training_curves(result), folder, "training-curve")


def _write(draw: Callable[[], Any], folder: Path, name: str) -> list[Path]:
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    with plt.rc_context({**STYLE, "text.parse_math": False}):
        figure = draw()
        written = save_figure(figure, folder, name)
        plt.close(figure)
    return written


def draw_sweep(sweep: Sweep) -> Any:
    """Three panels over temperature: return with the floor as a band, gap, entropy."""
    import matplotlib.pyplot as plt

    panels = 3 if sweep.gaps else 2
    figure, axes = plt.subplots(1, panels, figsize=(2.55 * panels, 2.5), squeeze=False)
    returns, entropy = axes[0][0], axes[0][-1]
    width = sweep.temperatures[-1]
    for level_set, colour, marker, dash, fill, shift in (
        ("test", BLUE, "o", "-", BLUE, -0.008 * width),
        ("train", GREEN, "^", "--", "white", 0.008 * width),
    ):
        grid = [temperature + shift for temperature in sweep.temperatures]
        if level_set not in sweep.floors:
            continue
        points = [point for point in sweep.points if point.level_set == level_set]
        words = "held-out" if level_set == "test" else "training"
        _errorbars(
            returns, grid, [p.episode_return for p in points], colour, marker, dash, label=words, fill=fill
        )
        _band(returns, sweep.floors[level_set], colour, label=f"floor, {words}")
        entropy.plot(
            grid, [p.entropy_played for p in points], marker + dash, color=colour, mfc=fill, ms=4, lw=1.2
        )
    returns.set_ylabel("return")
    figure.legend(*returns.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    entropy.set_ylabel("entropy played (nats)")
    entropy.set_ylim(bottom=0)
    if sweep.gaps:
        gap = axes[0][1]
        gap.axhline(0, color="black", lw=0.7)
        floor_gap = sweep.floors["train"].value - sweep.floors["test"].value
        gap.axhline(floor_gap, color=GREY, lw=1.1, ls="--", label="floor's own gap")
        _errorbars(gap, sweep.temperatures, list(sweep.gaps.values()), PURPLE, "D", "-", label="gap")
        gap.set_ylabel("gap: train − test return")
        gap.legend(loc="best")
    for panel in axes[0]:
        panel.set_xlabel("temperature (0 greedy, 1 sampled)")
    figure.suptitle(f"{sweep.game}, {sweep.run.name}: bars and bands are one SE over levels", fontsize=8)
    return figure


def draw_training_curves(result: TrainingCurves) -> Any:
    """A row a run: return on training levels beside the in-loop mean, gap, and held-out return above the floor."""
    import matplotlib.pyplot as plt

    rows = len(result.curves)
    figure, axes = plt.subplots(rows, 3, figsize=(7.9, 2.3 * rows + 0.35), squeeze=False, sharex="row")
    for panels, curve in zip(axes, result.curves, strict=True):
        _curve(panels, curve)
    for panel in axes[-1]:
        panel.set_xlabel("environment steps (thousands)")
    named: dict[str, Any] = {}
    for panel in axes.flat:
        named |= dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(list(named.values()), list(named), loc="outside lower center", ncols=len(named))
    figure.suptitle("bars and bands are one SE over levels; the in-loop mean has none of its own", fontsize=8)
    return figure


def _curve(panels: Sequence[Any], curve: TrainingCurve) -> None:
    returns, gap, delta = panels
    if curve.in_loop_curve:
        steps, means = zip(*curve.in_loop_curve, strict=True)
        returns.plot([s / 1e3 for s in steps], means, color=GREY, lw=1.0, label="in-loop mean")
    _band(returns, curve.floors["train"], GREY, label="floor")
    gap.axhline(0, color="black", lw=0.7)
    delta.axhline(0, color="black", lw=0.7)
    floor_gap = curve.floors["train"].value - curve.floors["test"].value
    gap.axhline(floor_gap, color=GREY, lw=1.1, ls="--", label="floor's own gap")
    for rule in curve.rules:
        rows = [row for row in curve.points if row.rule == rule]
        colour, marker, dash = _RULES.get(rule, (GREEN, "^", ":"))
        thousands = [row.steps / 1e3 for row in rows]
        for panel, values in (
            (returns, [row.train for row in rows]),
            (gap, [row.gap for row in rows]),
            (delta, [row.delta for row in rows]),
        ):
            _errorbars(panel, thousands, values, colour, marker, dash, label=rule)
    returns.set_ylabel("return on training levels")
    gap.set_ylabel("gap: train − test return")
    delta.set_ylabel("held-out return − floor")
    returns.set_title(curve.name, loc="left")


def _errorbars(
    axes: Any,
    x: Sequence[float],
    values: Sequence[LevelContrast],
    colour: str,
    marker: str,
    dash: str,
    *,
    label: str,
    fill: str | None = None,
) -> None:
    axes.errorbar(
        x, [value.value for value in values], yerr=[value.se for value in values], fmt=marker, ls=dash, color=colour,
        mfc=fill or colour, ms=4, lw=1.2, elinewidth=0.9, label=label,
    )  # fmt: skip


def _band(axes: Any, floor: LevelContrast, colour: str, *, label: str) -> None:
    axes.axhline(floor.value, color=colour, lw=0.9, ls=":")
    axes.axhspan(floor.value - floor.se, floor.value + floor.se, color=colour, alpha=0.15, lw=0, label=label)
