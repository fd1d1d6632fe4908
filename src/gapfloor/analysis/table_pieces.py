"""Large tables, piece by piece: only the columns that an analysis uses, labels as dictionaries of small numbers.

A gigabyte of CSV holds some twenty million episodes but a few dozen labels. Read as a whole it takes several times its
size; read in pieces, about a third of it. Columns that are not used keep their names and lose their contents.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from gapfloor.analysis.table_options import ALIASES, LABEL_NAMES, TableOptions

#: Called with the number of bytes that were read and the size of the file.
ReadingProgress = Callable[[int, int], None]
#: Columns of whole numbers, in the smallest type that their values usually need.
_WHOLE = {"slot": pa.int32(), "index": pa.int32(), "level_seed": pa.int64()}
_LABELS = (*LABEL_NAMES, "reference")
#: Never used by an analysis, though a table may have it.
_UNUSED = ("length",)
_BLOCK = 4 << 20
_ROWS = 1 << 18


def folded_name(name: str) -> str:
    """A column's name as it is compared: `Episode Return` is `episode_return`."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def meaning(name: str, options: TableOptions) -> str:
    """Which of our columns a file's column may be, or nothing. Several columns may have the same meaning."""
    for ours, theirs in options.columns.items():
        if theirs == name.strip():
            return ours
    plain = folded_name(name)
    return next((ours for ours, names in ALIASES.items() if plain in (ours, *names)), "")


def read_csv_pieces(
    path: Path,
    *,
    names: list[str],
    options: TableOptions,
    read_options: dict[str, Any],
    parse_options: dict[str, Any],
    convert_options: dict[str, Any],
    progress: ReadingProgress | None,
) -> pa.Table | None:
    """A CSV file's used columns; None where they are not what they usually are, and types must be found by reading all.

    Args:
        path: the file.
        names: its column names.
        options: what the user says about the columns.
        read_options: for `pyarrow.csv.ReadOptions`.
        parse_options: for `pyarrow.csv.ParseOptions`.
        convert_options: for `pyarrow.csv.ConvertOptions`.
        progress: called after each piece.
    """
    used = {name: meaning(name, options) for name in names}
    used = {name: ours for name, ours in used.items() if ours and ours not in _UNUSED}
    if len(set(names)) < len(names):
        return None
    # A table written by pandas has 3.0 for 3 where another row has none.
    for whole in (_WHOLE, dict.fromkeys(_WHOLE, pa.float64())):
        types = {name: _type_of(ours, whole) for name, ours in used.items()}
        try:
            with _CountedFile(path, progress) as file:
                stream = pa.PythonFile(file, mode="r")
                reader = pa_csv.open_csv(
                    pa.CompressedInputStream(stream, "gzip") if path.suffix.lower() == ".gz" else stream,
                    read_options=pa_csv.ReadOptions(block_size=_BLOCK, **read_options),
                    parse_options=pa_csv.ParseOptions(**parse_options),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=types, include_columns=list(types), **convert_options
                    ),
                )
                table = _narrow_table(reader)
                return None if table is None else _with_empty_columns(table, names)
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            if "CSV parse error" in str(error):
                raise
    return None


def read_parquet_pieces(path: Path, options: TableOptions) -> pa.Table:
    """A Parquet file's used columns."""
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        names = list(schema.names)
        used = [name for name in names if meaning(name, options) not in ("", *_UNUSED)]
        if len(set(names)) < len(names) or not used:
            return file.read()
        text = [name for name in used if pa.types.is_string(schema.field(name).type)]
    with pq.ParquetFile(path, read_dictionary=text) as file:
        batches = file.iter_batches(batch_size=_ROWS, columns=used)
        table = _narrow_table(batches, labels={n for n in used if meaning(n, options) in _LABELS})
    return schema.empty_table() if table is None else _with_empty_columns(table, names)


def _type_of(ours: str, whole: dict[str, pa.DataType]) -> pa.DataType:
    if ours == "episode_return":
        return pa.float64()
    return whole.get(ours) or pa.dictionary(pa.int32(), pa.string())


def _narrow_table(batches: Iterable[pa.RecordBatch], labels: Iterable[str] = ()) -> pa.Table | None:
    """The pieces as one table, with labels as dictionaries whose indices take two bytes where that is enough."""
    wanted = set(labels)
    pieces: list[list[pa.Array]] = []
    names: list[str] = []
    for batch in batches:
        names = batch.schema.names
        arrays = []
        for name, array in zip(names, batch.columns, strict=True):
            if name in wanted and not pa.types.is_dictionary(array.type) and _is_plain(array.type):
                array = array.dictionary_encode()
            arrays.append(_narrow(array))
        pieces.append(arrays)
    if not pieces:
        return None
    columns = []
    for parts in zip(*pieces, strict=True):
        if len({part.type for part in parts}) > 1:
            wide = pa.dictionary(pa.int32(), parts[0].type.value_type)
            parts = tuple(part.cast(wide) for part in parts)
        columns.append(pa.chunked_array(parts))
    return pa.table(columns, names=names)


def _is_plain(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind))


def _narrow(array: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(array.type) or len(array.dictionary) > 1 << 15:
        return array
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int16()), array.dictionary)


def _with_empty_columns(table: pa.Table, names: list[str]) -> pa.Table:
    columns = {
        name: table[name] if name in table.column_names else pa.nulls(table.num_rows) for name in names
    }
    return pa.table(columns)


def constant_column(value: str, n_rows: int) -> pa.Array:
    """One label for every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, dtype=np.int8)), pa.array([value]))


class _CountedFile(io.FileIO):
    """A file that says how much of it was read."""

    def __init__(self, path: Path, progress: ReadingProgress | None) -> None:
        super().__init__(path, "rb")
        self._size, self._progress = path.stat().st_size, progress

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if self._progress is not None:
            self._progress(self.tell(), self._size)
        return data or b""
