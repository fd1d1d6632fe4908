"""The files of a sweep, of training curves and of a comparison: the JSON document, and the figure if there is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gapfloor.records.atomic import write_text_atomically
from gapfloor.report.figures.measurements import sweep_figure, training_curves_figure
from gapfloor.report.figures.model import FigureSpec
from gapfloor.report.figures.print_figure import write_figures

if TYPE_CHECKING:
    from gapfloor.analysis.comparison import Comparison
    from gapfloor.analysis.sweep import Sweep
    from gapfloor.analysis.training_curves import TrainingCurves


def write_sweep(result: Sweep, folder: Path) -> list[Path]:
    """The figure in three formats, and sweep.json."""
    return _write(folder, "sweep.json", result.to_dict(), sweep_figure(result))


def write_training_curves(result: TrainingCurves, folder: Path) -> list[Path]:
    """The figure in three formats, and training-curve.json."""
    return _write(folder, "training-curve.json", result.to_dict(), training_curves_figure(result))


def write_comparison(result: Comparison, folder: Path) -> list[Path]:
    """comparison.json."""
    return _write(folder, "comparison.json", result.to_dict())


def _write(folder: Path, name: str, document: dict[str, Any], *figures: FigureSpec) -> list[Path]:
    written = write_figures(figures, folder, with_title=True) if figures else []
    write_text_atomically(folder / name, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return [*written, folder / name]
