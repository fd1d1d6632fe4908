"""What every result of a public function can become: JSON values, an Arrow table, a pandas table, a figure.

A result names the entries of its document that hold rows (`row_names`); the first of them is the one that
`to_arrow()` and `to_pandas()` give. How a result prints itself is in `tables/readable.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from gapfloor.errors import MissingExtraError, unknown_name
from gapfloor.json_values import jsonable
from gapfloor.lazy import LazyMethod


class ResultData:
    """A result as values that other tools take."""

    row_names: ClassVar[tuple[str, ...]] = ()
    """Entries of the document that hold rows, the most useful first."""

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
