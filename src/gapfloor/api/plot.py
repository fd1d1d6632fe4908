"""Which figure belongs to which result."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from gapfloor.analysis.comparison import Comparison
from gapfloor.analysis.evaluation import Evaluation, FloorMeasurement
from gapfloor.analysis.results import AnalysisResults
from gapfloor.analysis.sweep import Sweep
from gapfloor.analysis.training_curves import TrainingCurves
from gapfloor.api.progress import in_notebook
from gapfloor.errors import UsageError
from gapfloor.report.figures.build import build_figures
from gapfloor.report.figures.measurements import (
    comparison_figure,
    evaluation_figure,
    floor_figure,
    sweep_figure,
    training_curves_figure,
)
from gapfloor.report.figures.model import FigureSpec
from gapfloor.report.figures.print_figure import draw_figure, drawing_style
from gapfloor.report.source import source_of_results


@singledispatch
def plot(result: Any) -> Any:
    """The matplotlib figure of a result; `result.plot()` is the same.

    Args:
        result: What `floor`, `evaluate`, `sweep`, `compare`, `training_curve` or `analyse` returned.

    Returns:
        A `matplotlib.figure.Figure`: save it with `figure.savefig("name.pdf")`.

    Examples:
        >>> import gapfloor
        >>> floor = gapfloor.floor("maze", draws=0, episodes=16, progress=False)
        >>> figure = floor.plot()
        >>> [axes.get_title() for axes in figure.axes]
        ['maze']
    """
    raise UsageError(f"There is no figure of a {type(result).__name__}: print it, or use to_dict().")


def _drawn(spec: FigureSpec) -> Any:
    import matplotlib.pyplot as plt

    with drawing_style():
        figure = draw_figure(spec)
    if in_notebook():
        plt.close(figure)  # the notebook shows what a cell returns; an open figure would be shown twice
    return figure


def _register(kind: type, describe: Callable[[Any], FigureSpec]) -> None:
    plot.register(kind, lambda result: _drawn(describe(result)))


_register(FloorMeasurement, floor_figure)
_register(Evaluation, evaluation_figure)
_register(Sweep, sweep_figure)
_register(Comparison, comparison_figure)
_register(TrainingCurves, training_curves_figure)


@plot.register
def _(result: AnalysisResults) -> Any:
    figures = build_figures(source_of_results(result))
    if not figures:
        raise UsageError("These results hold neither a comparison with the floor nor a gap to draw.")
    return _drawn(figures[0])
