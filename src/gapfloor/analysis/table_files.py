"""Anything that holds results as one table: text of any delimiter and encoding, Parquet, JSON, numpy, logs, a folder.

Nothing is guessed that could change a number: a decimal comma is read only where the user says so. A gigabyte of CSV
holds some twenty million episodes but a few dozen labels, so tables of episodes are read in pieces: only the columns
that an analysis uses, with labels as dictionaries of small numbers. Columns that are not used keep their names and lose
their contents.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from gapfloor.analysis.column_names import ALIASES, TableOptions, holds_episodes, meaning
from gapfloor.analysis.foreign_formats import (
    MOST_BYTES,
    MOST_MEANS,
    RawTable,
    check_extent,
    read_document,
    read_folder,
)
from gapfloor.errors import UsageError

#: Columns of whole numbers, in the smallest type that their values usually need.
_WHOLE = {"slot": pa.int32(), "index": pa.int32(), "level_seed": pa.int64()}
_TEXT = pa.dictionary(pa.int32(), pa.string())
#: Never used by an analysis, though a table may have it.
_UNUSED = ("length",)
_BLOCK = 4 << 20
_ROWS = 1 << 18
#: More episodes than fit in the memory of most machines; a few compressed bytes can declare any number of them.
MOST_ROWS = 50_000_000
#: A text that is larger holds episodes.
_MOST_TEXT = 4 << 20
_DELIMITERS = (",", "\t", ";", "|", "&")
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
#: A name of an object; a quotation mark after a backslash is of a text that holds JSON itself.
_JSON_NAME = re.compile(rb'"((?:[^"\\]++|\\[^"])*+)"\s*+:')
#: Bytes that are looked at to find a text file's encoding and delimiter.
_HEAD = 1 << 16
_UNREADABLE = (pa.ArrowException, OSError, UnicodeError, csv.Error)


def read_table(source: Any, options: TableOptions) -> RawTable:
    """The rows of a table in memory, a file or a folder of files."""
    if isinstance(source, pa.Table):
        return RawTable(source)
    path = Path(source)
    if path.is_dir():
        return read_folder(path, options, read_table)
    if not path.exists():
        raise UsageError(f"There is no store or file at {path}. Check the path.")
    if not path.is_file():
        raise UsageError(f"{path} is not a regular file. Give a .csv, .parquet, .jsonl or .npz file.")
    suffix = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    readers: dict[str, tuple[Callable[..., RawTable], str]] = {
        **dict.fromkeys(("parquet", "pq"), (_read_parquet, "Parquet")),
        **dict.fromkeys(("jsonl", "ndjson"), (_read_json_lines, "JSON lines")),
        **dict.fromkeys(("csv", "tsv", "txt", "md", "tex"), (_read_text, "CSV")),
        **dict.fromkeys(("json", "eval", "npz"), (read_document, "a document")),
    }
    if suffix not in readers:
        raise UsageError(
            f"{path} is not a store or a .csv, .tsv, .md, .tex, .parquet, .json, .jsonl, .npz or .eval file. Convert "
            "it to one of these."
        )
    reader, kind = readers[suffix]
    try:
        return reader(path, options)
    except _UNREADABLE as error:
        words = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"{path} cannot be read as {kind} ({words}).") from None


def _read_parquet(path: Path, options: TableOptions) -> RawTable:
    with pq.ParquetFile(path) as file:
        _check_rows(file.metadata.num_rows)
        schema = file.schema_arrow
        names = list(schema.names)
        check_extent(1, len(names))
        used = _used(names, options)
        if len(set(names)) < len(names):
            return RawTable(schema.empty_table())  # refused by its names
        if not holds_episodes(names, options) and file.metadata.num_rows <= MOST_MEANS:
            return RawTable(_read_means(path, schema))
        text = [name for name in used if pa.types.is_string(schema.field(name).type)]
    with pq.ParquetFile(path, read_dictionary=text) as file:
        table = _joined(file.iter_batches(batch_size=_ROWS, columns=list(used)), schema)
    return RawTable(_with_empty_columns(table, names))


def _read_means(path: Path, schema: pa.Schema) -> pa.Table:
    """A table that may hold means; a long text that a few bytes repeat in every row is never written out."""
    plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
    with pq.ParquetFile(path, read_dictionary=plain) as file:
        table = file.read(columns=plain)
    for name, column in zip(plain, table.columns, strict=True):
        if pa.types.is_dictionary(column.type) and table.num_rows:
            longest = max(pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0 for chunk in column.chunks)
            if longest * table.num_rows > MOST_BYTES:
                raise UsageError(
                    f"{path}: the column '{name}' repeats a text of {longest:,} bytes. Shorten it."
                )
    return table


def _read_json_lines(path: Path, options: TableOptions) -> RawTable:
    """JSON lines; refused where the table would be far larger than they are, because each has names of its own."""
    names: set[bytes] = set()
    n_lines = n_bytes = 0
    rest = b""
    with pa.input_stream(str(path)) as stream:
        while block := stream.read(_BLOCK):
            n_bytes, n_lines = n_bytes + len(block), n_lines + block.count(b"\n")
            if len(rest) > _BLOCK:
                break  # the reader refuses lines of this length
            whole, _, rest = (rest + block).rpartition(b"\n")
            names.update(_JSON_NAME.findall(whole))
            _check_rows(n_lines)
            check_extent(n_lines, len(names), most=n_bytes)
    names.update(_JSON_NAME.findall(rest))
    check_extent(n_lines, len(names), most=n_bytes)
    table = pa_json.read_json(path)
    table.validate(full=True)  # pyarrow itself accepts texts and names that are not UTF-8
    _ = table.column_names
    return RawTable(table, "line", 1)


def _read_text(path: Path, options: TableOptions) -> RawTable:
    with pa.input_stream(str(path)) as stream:
        head = bytes(stream.read(_HEAD))
    encoding = _encoding(head, path)
    lines = head.decode(encoding, errors="replace").removeprefix("\ufeff").splitlines()
    # Text may stand above a table of Markdown or LaTeX, and a line of JSON above a monitor file of Stable-Baselines3.
    marked = {".md": "|", ".tex": "&"}.get(path.suffix.lower(), "")
    starts = (at for at, line in enumerate(lines) if marked in line and line and not line.startswith("#"))
    comments = next(starts, len(lines))
    if comments == len(lines):
        raise UsageError(f"{path} holds no header line.")
    delimiter = marked or max(_DELIMITERS, key=lines[comments].count)
    names = [name.strip() for name in next(csv.reader([lines[comments]], delimiter=delimiter))]
    notes = []
    if delimiter != ",":
        notes.append(f"columns are separated by {'a tab' if delimiter == chr(9) else repr(delimiter)}")
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"the file is read as {encoding}")
    if not holds_episodes(names, options) and path.stat().st_size <= _MOST_TEXT and path.suffix != ".gz":
        table = _text_table(path.read_text(encoding=encoding), delimiter, path)
    else:
        table = _episodes_of_text(path, names, comments, encoding, delimiter, options)
    return RawTable(table, "line", 2 + comments, tuple(notes))


def _text_table(text: str, delimiter: str, path: Path) -> pa.Table:
    """A small table with every column as text, also in the marks of Markdown or LaTeX."""
    lines = [line.strip() for line in text.removeprefix("\ufeff").splitlines()]
    lines = [line for line in lines if delimiter in line and not line.startswith("#")]
    if delimiter == "|":
        lines = [line.removeprefix("|").removesuffix("|") for line in lines if set(line) - set("|-: ")]
    if delimiter == "&":
        lines = [_without_latex(line) for line in lines]
    rows = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    if not rows:
        raise UsageError(f"{path} holds no table: no line has two columns.")
    names = [name.strip() for name in rows[0]]
    check_extent(len(rows), len(names), most=len(text))
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"{path} has the column '{repeated}' more than once.")
    filled = [[*row, *[""] * len(names)][: len(names)] for row in rows[1:]]
    return pa.table(
        {name: pa.array([row[at].strip() for row in filled], pa.string()) for at, name in enumerate(names)}
    )


def _without_latex(line: str) -> str:
    r"""A row of a LaTeX table as plain text.

    >>> _without_latex(r"coinrun & \textbf{8.7$\pm$0.4} \\ \hline")
    'coinrun & 8.7±0.4'
    """
    line = line.partition(r"\\")[0].replace(r"\pm", "±").replace("$", "")
    return re.sub(r"\\[a-zA-Z]+\s*|[{}\\]", "", line).strip()


def _episodes_of_text(
    path: Path,
    names: list[str],
    comments: int,
    encoding: str,
    delimiter: str,
    options: TableOptions,
) -> pa.Table:
    """The used columns of a CSV file, as numbers where they are numbers everywhere and as text where they are not."""
    used = _used(names, options)
    repeated = next((name for name in used if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(f"{path} has the column '{repeated}' more than once.")
    # A table written by pandas has 3.0 for 3 where another row has none.
    floats = dict.fromkeys((*_WHOLE, "episode_return"), pa.float64())
    numbers: tuple[dict[str, pa.DataType], ...] = ({**floats, **_WHOLE}, floats, {})
    for types in numbers:
        read = {name: types.get(ours, _TEXT) for name, ours in used.items()}
        try:
            with path.open("rb") as file:
                stream = pa.PythonFile(file, mode="r")
                reader = pa_csv.open_csv(
                    pa.CompressedInputStream(stream, "gzip") if path.suffix.lower() == ".gz" else stream,
                    read_options=pa_csv.ReadOptions(
                        block_size=_BLOCK, skip_rows=comments + 1, encoding=encoding, column_names=names
                    ),
                    parse_options=pa_csv.ParseOptions(delimiter=delimiter),
                    convert_options=pa_csv.ConvertOptions(
                        column_types=read, include_columns=list(read), null_values=[""], strings_can_be_null=True,
                        quoted_strings_can_be_null=True, decimal_point=options.decimal,
                    ),
                )  # fmt: skip
                return _with_empty_columns(_joined(reader, pa.schema(read.items())), names)
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            if "CSV parse error" in str(error) or not types:
                raise
    raise AssertionError("text can always be read")


def _used(names: Sequence[str], options: TableOptions) -> dict[str, str]:
    """The columns of a table of episodes that an analysis uses -> their meanings."""
    found = {name: meaning(name, options) for name in names}
    return {name: ours for name, ours in found.items() if ours in ALIASES and ours not in _UNUSED}


def _joined(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Pieces of a table as one, as long as they hold no more rows than an analysis can take."""
    pieces, n = [], 0
    for batch in batches:
        n += batch.num_rows
        _check_rows(n)
        pieces.append(batch)
    return pa.Table.from_batches(pieces) if pieces else schema.empty_table()


def _check_rows(n: int) -> None:
    if n > MOST_ROWS:
        raise UsageError(f"The table has {n:,} rows or more: at most {MOST_ROWS:,} episodes are read.")


def _with_empty_columns(table: pa.Table, names: list[str]) -> pa.Table:
    """The table with every column of its file; those that are not used are null."""
    columns = {
        name: table[name] if name in table.column_names else pa.nulls(table.num_rows) for name in names
    }
    return pa.table(columns)


def _encoding(head: bytes, path: Path) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    if b"\0" in head:
        raise UsageError(f"{path} is not a text file: it contains NUL bytes.")
    try:
        # The last character may be cut in two.
        head[: max(len(head) - 3, 0) if len(head) == _HEAD else len(head)].decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"
