"""The files of a sweep, of training curves or of a comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gapfloor.records.atomic import write_text_atomically
from gapfloor.report.figures.model import FigureSpec
from gapfloor.report.figures.print_figure import write_figures


def write_result(document: dict[str, Any], name: str, folder: Path, *figures: FigureSpec) -> list[Path]:
    """Write NAME.json, and each figure in three formats; returns the files."""
    written = write_figures(figures, folder, with_title=True) if figures else []
    path = folder / f"{name}.json"
    write_text_atomically(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return [*written, path]
