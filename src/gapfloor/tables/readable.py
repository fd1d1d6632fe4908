"""Results that print themselves, the same way wherever a person reads them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from gapfloor.lazy import resolve
from gapfloor.result_data import ResultData
from gapfloor.tables.table import Table
from gapfloor.tables.terminal import clean_lines, terminal_width, to_terminal


class ReadableResult(ResultData):
    """A result that prints itself: its tables, then what they say. Notebooks show the same as HTML."""

    notes: tuple[str, ...] = ()
    written: tuple[Path, ...] = ()
    """The files that were written for the result."""
    failure: str = ""
    """Why a check that the user asked for failed: the command then exits with 1. Empty where nothing failed."""

    def with_files(self, folder: str | Path | None) -> Self:
        """The result, whose `written` are the files that were made for it in the folder; None makes none."""
        if folder is not None:
            write = resolve("gapfloor.report.result_files:write_result")
            object.__setattr__(self, "written", tuple(write(self, Path(folder))))
        return self

    def table(self) -> Table | None:
        """The table that people read first; None if sentences say it all."""
        return None

    def tables(self) -> Sequence[Table]:
        """Every table, in order."""
        table = self.table()
        return [table] if table else []

    def sentences(self) -> list[str]:
        """What the tables say, in words."""
        return []

    def __repr__(self) -> str:
        tables = [to_terminal(table, terminal_width()) for table in self.tables()]
        return "\n".join([*tables, *map(clean_lines, (*self.sentences(), *self.notes))])

    def _repr_html_(self) -> str:
        from gapfloor.tables.html import to_html

        lines = [f"<p>{html.escape(line)}</p>" for line in (*self.sentences(), *self.notes)]
        return "".join([*map(to_html, self.tables()), *lines])


class ReportResult(ReadableResult):
    """A result that prints itself as a report of its own, which notebooks show as it is."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"
