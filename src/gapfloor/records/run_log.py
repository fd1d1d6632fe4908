"""Columns of a run's training log (`runs/*/log.parquet`) in the types that they are written in.

A log can come with somebody else's store: a column of another type is an error here, not in the arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def read_run_log(path: Path, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """These columns, as these types; an ArrowException or OSError says that they are not there or are others."""
    table = pq.read_table(path, columns=list(columns), partitioning=None).select(list(columns))
    return table.cast(pa.schema(list(columns.items())))
