"""The files of a sweep, of training curves or of a comparison."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gapfloor.analysis.checkpoints import Sweep, TrainingCurves
from gapfloor.analysis.comparison import Comparison
from gapfloor.records.atomic import write_text_atomically
from gapfloor.report.figures.measurements import sweep_figure, training_curves_figure
from gapfloor.report.figures.print_figure import write_figures

#: Result -> the name of its document, and what describes its figure.
_FILES: dict[type, tuple[str, Callable[[Any], Any] | None]] = {
    Sweep: ("sweep.json", sweep_figure),
    TrainingCurves: ("training-curve.json", training_curves_figure),
    Comparison: ("comparison.json", None),
}


def write_result(result: Sweep | TrainingCurves | Comparison, folder: Path) -> list[Path]:
    """Write the figure in three formats, if the result has one, and its document."""
    name, figure = _FILES[type(result)]
    written = write_figures([figure(result)], folder, with_title=True) if figure else []
    write_text_atomically(folder / name, json.dumps(result.to_dict(), indent=1, allow_nan=False) + "\n")
    return [*written, folder / name]
