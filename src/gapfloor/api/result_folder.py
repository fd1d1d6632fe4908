"""The folder in which a public function leaves the files of its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from gapfloor.analysis.checkpoints import Sweep, TrainingCurves
    from gapfloor.analysis.comparison import Comparison

R = TypeVar("R", "Sweep", "TrainingCurves", "Comparison")


def with_files(result: R, folder: str | Path | None) -> R:
    """The result, whose `written` are the files that were made for it; None makes none."""
    if folder is not None:
        from gapfloor.report.result_files import write_result

        object.__setattr__(result, "written", tuple(write_result(result, Path(folder))))
    return result
