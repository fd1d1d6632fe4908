"""The folder in which a public function leaves the files of its result."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from gapfloor.tables.readable import ReadableResult

R = TypeVar("R", bound=ReadableResult)


def with_files(result: R, name: str, folder: str | Path | None, *, has_figure: bool = True) -> R:
    """The result, whose `written` are the files that were made for it: its document and its figure.

    Without a folder nothing is written.
    """
    if folder is not None:
        from gapfloor.api.plot import figure_of
        from gapfloor.report.result_files import write_result

        figures = [figure_of(result)] if has_figure else []
        files = write_result(result.to_dict(), name, Path(folder), *figures)
        object.__setattr__(result, "written", tuple(files))
    return result
