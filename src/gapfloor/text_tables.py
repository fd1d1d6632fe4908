"""Tables and numbers as text, written the same way wherever a person reads them."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from gapfloor.result_data import ResultData

MISSING = "-"

#: Headings, and the cells of each row.
TextTable = tuple[list[str], list[list[str]]]


class ReadableResult(ResultData):
    """A result that prints itself: its tables, then what they say. Notebooks show the same as HTML."""

    notes: tuple[str, ...] = ()

    def table(self) -> TextTable:
        """The table that people read first."""
        raise NotImplementedError

    def tables(self) -> list[TextTable]:
        """Every table, in order."""
        return [self.table()]

    def sentences(self) -> list[str]:
        """What the tables say, in words."""
        return []

    def __repr__(self) -> str:
        tables = [text_table(*table) for table in self.tables()]
        return "\n".join([*tables, *self.sentences(), *self.notes])

    def _repr_html_(self) -> str:
        lines = [f"<p>{html.escape(line)}</p>" for line in (*self.sentences(), *self.notes)]
        return "".join([*(html_table(*table) for table in self.tables()), *lines])


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


def counted(n: int, singular: str, plural: str = "") -> str:
    """A count with its noun in the right number.

    >>> counted(1, "run"), counted(3, "run"), counted(2, "entry", "entries")
    ('1 run', '3 runs', '2 entries')
    """
    return f"{n:,} {singular}" if n == 1 else f"{n:,} {plural or singular + 's'}"


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table in columns."""
    widths = [max(len(line[column]) for line in [headings, *rows]) for column in range(len(headings))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        for line in [headings, *rows]
    ]
    return "\n".join(line.rstrip() for line in [lines[0], "-" * len(lines[0].rstrip()), *lines[1:]])


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for notebooks; texts are escaped."""
    head = "".join(f"<th>{html.escape(text)}</th>" for text in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
