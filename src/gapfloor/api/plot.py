"""Which figure and which file belong to which result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gapfloor.analysis.checkpoints import Sweep, TrainingCurves
from gapfloor.analysis.comparison import Comparison
from gapfloor.analysis.evaluation import Evaluation, FloorMeasurement
from gapfloor.analysis.results import AnalysisResults
from gapfloor.api.progress import in_notebook
from gapfloor.errors import UsageError
from gapfloor.records.atomic import write_text_atomically
from gapfloor.report.figures.build import build_figures
from gapfloor.report.figures.measurements import (
    comparison_figure,
    evaluation_figure,
    floor_figure,
    sweep_figure,
    training_curves_figure,
)
from gapfloor.report.figures.model import FigureSpec
from gapfloor.report.figures.print_figure import draw_figure, drawing_style, write_figures
from gapfloor.report.source import source_of_results

R = TypeVar("R", Sweep, TrainingCurves, Comparison)


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
    import matplotlib.pyplot as plt

    spec = figure_of(result)
    with drawing_style():
        figure = draw_figure(spec)
    if in_notebook():
        plt.close(figure)  # the notebook shows what a cell returns; an open figure would be shown twice
    return figure


def with_files(result: R, folder: str | Path | None) -> R:
    """The result, whose `written` are the files that were made for it in the folder: its figure and its document."""
    if folder is not None:
        document, has_figure = _DOCUMENTS[type(result)]
        path = Path(folder) / document
        figures: list[Path] = []
        if has_figure:
            figures = write_figures([figure_of(result)], path.parent, with_title=True)
        write_text_atomically(path, json.dumps(result.to_dict(), indent=1, allow_nan=False) + "\n")
        object.__setattr__(result, "written", (*figures, path))
    return result


def figure_of(result: Any) -> FigureSpec:
    """The description of a result's figure."""
    for kind, describe in _FIGURES.items():
        if isinstance(result, kind):
            return describe(result)
    raise UsageError(f"There is no figure of a {type(result).__name__}: print it, or use to_dict().")


def _analysis_figure(result: AnalysisResults) -> FigureSpec:
    figures = build_figures(source_of_results(result))
    if not figures:
        raise UsageError("These results hold neither a comparison with the floor nor a gap to draw.")
    return figures[0]


_FIGURES: dict[type, Callable[[Any], FigureSpec]] = {
    FloorMeasurement: floor_figure,
    Evaluation: evaluation_figure,
    Sweep: sweep_figure,
    Comparison: comparison_figure,
    TrainingCurves: training_curves_figure,
    AnalysisResults: _analysis_figure,
}

#: Result -> the name of its document, and whether its figure is written too.
_DOCUMENTS: dict[type, tuple[str, bool]] = {
    Sweep: ("sweep.json", True),
    TrainingCurves: ("training-curve.json", True),
    Comparison: ("comparison.json", False),
}
