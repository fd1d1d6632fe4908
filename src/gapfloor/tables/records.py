"""Tables as data: the unrounded values of every row under the names of their columns."""

from __future__ import annotations

from typing import Any

from gapfloor.json_values import jsonable
from gapfloor.result_data import arrow_table, pandas_frame
from gapfloor.tables.cells import Raw
from gapfloor.tables.table import Table


def to_records(table: Table) -> list[dict[str, Raw]]:
    """One JSON object per row; null where there is no value."""
    names = table.csv_names
    assert len(set(names)) == len(names), (table.name, names)
    values = ([jsonable(value) for cell in row for value in cell.raw] for row in table.body)
    return [dict(zip(names, row, strict=True)) for row in values]


def to_arrow(table: Table) -> Any:
    """The records as a pyarrow table."""
    return arrow_table(to_records(table), names=table.csv_names)


def to_pandas(table: Table) -> Any:
    """The records as a pandas DataFrame."""
    return pandas_frame(to_arrow(table))
