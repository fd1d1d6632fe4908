"""Results of public functions: they print themselves, and become JSON values, Arrow and pandas tables, and figures.

A result names the entries of its document that hold rows (`row_names`); the first of them is the one that
`to_arrow()` and `to_pandas()` give.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from gapfloor.errors import MissingExtraError, unknown_name
from gapfloor.json_values import jsonable
from gapfloor.lazy import LazyMethod
from gapfloor.tables.table import Table
from gapfloor.tables.terminal import clean_lines, terminal_width, to_terminal


class ReadableResult:
    """A result that prints itself: its tables, then what they say. Notebooks show the same as HTML."""

    row_names: ClassVar[tuple[str, ...]] = ()
    """Entries of the document that hold rows, the most useful first."""

    notes: tuple[str, ...] = ()
    written: tuple[Path, ...] = ()
    """The files that were written for the result."""
    failure: str = ""
    """Why a check that the user asked for failed: the command then exits with 1. Empty where nothing failed."""

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

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values: what the command prints with `--json`."""
        return dict(jsonable(self))

    def json_rows(self, name: str) -> list[dict[str, Any]]:
        """One entry of `row_names` as JSON objects; the result as one object if it has none."""
        document = self.to_dict()
        return list(document[name]) if name else [document]

    def to_arrow(self, rows: str = "") -> Any:
        """Rows as a pyarrow table; nested values become columns named parent.child, intervals .low and .high.

        `rows` is one of `row_names`, by default the first; a result without any is one row.
        """
        import pyarrow as pa

        if rows and rows not in self.row_names:
            raise unknown_name("table of rows", rows, self.row_names)
        name = rows or next(iter(self.row_names), "")
        flat = [flat_row(row, is_pair=_is_interval) for row in self.json_rows(name)]
        columns = dict.fromkeys(key for row in flat for key in row)
        return pa.table({column: [row.get(column) for row in flat] for column in columns})

    def to_pandas(self, rows: str = "") -> Any:
        """Rows as a pandas DataFrame, with the columns of `to_arrow`."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise MissingExtraError(
                "to_pandas() needs pandas: pip install pandas, or use to_arrow()."
            ) from None
        return self.to_arrow(rows).to_pandas()

    plot = LazyMethod("gapfloor.api.plot:plot")
    """`plot()`: the result as a matplotlib figure, drawn as in a report."""

    report = LazyMethod("gapfloor.api.report:report")
    """`report(out)`: the report of what `analyse` returned; see `gapfloor.report`."""

    def __repr__(self) -> str:
        tables = [to_terminal(table, terminal_width()) for table in self.tables()]
        return "\n".join([*tables, *map(clean_lines, (*self.sentences(), *self.notes))])

    def _repr_html_(self) -> str:
        from gapfloor.tables.formats import to_html

        lines = [f"<p>{html.escape(line)}</p>" for line in (*self.sentences(), *self.notes)]
        return "".join([*map(to_html, self.tables()), *lines])


class ReportResult(ReadableResult):
    """A result that prints itself as a report of its own, which notebooks show as it is."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def flat_row(
    row: Mapping[str, Any], *, is_pair: Callable[[list[Any]], bool], prefix: str = ""
) -> dict[str, Any]:
    """One row without nesting: `a.b` for an entry of an entry, `a.low` and `a.high` for a pair.

    >>> flat_row({"n": 2, "delta": {"ci": [0.5, 1.5]}}, is_pair=lambda values: len(values) == 2)
    {'n': 2, 'delta.ci.low': 0.5, 'delta.ci.high': 1.5}
    """
    flat: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= flat_row(value, is_pair=is_pair, prefix=f"{name}.")
        elif isinstance(value, list) and is_pair(value):
            flat[f"{name}.low"], flat[f"{name}.high"] = value
        else:
            flat[name] = value
    return flat


def _is_interval(values: list[Any]) -> bool:
    """Whether a list holds the two ends of an interval, which are null where there is none."""
    return len(values) == 2 and all(value is None or isinstance(value, float) for value in values)
