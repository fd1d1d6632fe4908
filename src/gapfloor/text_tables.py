"""Results that print themselves, and numbers as text, written the same way wherever a person reads them."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

from gapfloor.result_data import ResultData
from gapfloor.tables.cells import counted, text_cell
from gapfloor.tables.column import Column
from gapfloor.tables.html import to_html
from gapfloor.tables.table import Table
from gapfloor.tables.terminal import clean_lines, terminal_width, to_terminal

__all__ = [
    "MISSING", "ReadableResult", "ReportResult", "TextTable", "as_table", "counted", "ends_text", "interval_text",
    "number", "p_text", "signed", "with_error",
]  # fmt: skip

MISSING = "-"

#: Headings, and the cells of each row.
TextTable = tuple[list[str], list[list[str]]]
#: An entry of a column of numbers: digits with their signs, brackets and separators.
_NUMERIC = re.compile(r"[-+−–<±×/%.,e\d\s\[\]()⁻⁰¹²³⁴⁵⁶⁷⁸⁹]*")


class ReadableResult(ResultData):
    """A result that prints itself: its tables, then what they say. Notebooks show the same as HTML."""

    notes: tuple[str, ...] = ()
    failure: str = ""
    """Why a check that the user asked for failed: the command then exits with 1. Empty where nothing failed."""

    def table(self) -> TextTable | Table:
        """The table that people read first."""
        raise NotImplementedError

    def tables(self) -> Sequence[TextTable | Table]:
        """Every table, in order."""
        return [self.table()]

    def sentences(self) -> list[str]:
        """What the tables say, in words."""
        return []

    def __repr__(self) -> str:
        tables = [to_terminal(as_table(table), terminal_width()) for table in self.tables()]
        return "\n".join([*tables, *map(clean_lines, (*self.sentences(), *self.notes))])

    def _repr_html_(self) -> str:
        lines = [f"<p>{html.escape(line)}</p>" for line in (*self.sentences(), *self.notes)]
        return "".join([*(to_html(as_table(table)) for table in self.tables()), *lines])


class ReportResult(ReadableResult):
    """A result that prints itself as a report of its own, which notebooks show as it is."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def number(value: float) -> str:
    """Two decimals, or three where two would show nothing.

    >>> number(1.5), number(0.0312), number(float("nan"))
    ('1.50', '0.031', '-')
    """
    if not math.isfinite(value):
        return MISSING
    return f"{value:.3f}" if 0 < abs(value) < 0.1 else f"{value:.2f}"


def signed(value: float) -> str:
    """Two decimals with the sign."""
    return f"{value:+.2f}" if math.isfinite(value) else MISSING


def with_error(value: float, sem: float) -> str:
    """A mean and its standard error."""
    return f"{number(value)} ± {number(sem)}" if math.isfinite(sem) else number(value)


def p_text(p: float) -> str:
    """A p value with two digits; small ones as powers of ten.

    >>> p_text(0.0312), p_text(2.5e-7), p_text(float("nan"))
    ('0.031', '2.5e-07', '-')
    """
    if not math.isfinite(p):
        return MISSING
    return f"{p:.2g}" if p < 0.1 else f"{p:.2f}"


def ends_text(ends: tuple[float, float]) -> str:
    """The two ends of an interval.

    >>> ends_text((0.5, 2.0))
    '[0.50, 2.00]'
    """
    return f"[{number(ends[0])}, {number(ends[1])}]"


def interval_text(low: float, high: float, *, confidence: float) -> str:
    """An interval with its confidence, or a remark where there is none.

    >>> interval_text(-1.0, 2.0, confidence=0.95)
    '[-1.00, +2.00] (95%)'
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return "(no interval)"
    return f"[{low:+.2f}, {high:+.2f}] ({confidence:.0%})"


def as_table(table: TextTable | Table) -> Table:
    """A table of plain texts as one that every writer takes; columns of numbers are aligned to the right."""
    if isinstance(table, Table):
        return table
    headings, rows = table
    columns = tuple(
        Column(heading, heading, "", text_cell, "r" if _is_numeric([row[at] for row in rows]) else "l")
        for at, heading in enumerate(headings)
    )
    return Table(name="", columns=columns, rows=tuple(tuple(map(text_cell, row)) for row in rows))


def _is_numeric(texts: Sequence[str]) -> bool:
    return any(char.isdigit() for text in texts for char in text) and all(map(_NUMERIC.fullmatch, texts))
