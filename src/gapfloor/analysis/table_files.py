"""Files of episodes as one table, whatever wrote them: CSV of any delimiter and encoding, Parquet, JSON lines, npz.

Nothing is guessed that could change a number: a decimal comma is read only where the user says so.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from gapfloor.analysis.table_options import ALIASES, LABEL_NAMES, TableOptions
from gapfloor.analysis.table_pieces import ReadingProgress, read_csv_pieces, read_parquet_pieces
from gapfloor.errors import UsageError
from gapfloor.npy_bytes import read_npz

_DELIMITERS = (",", "\t", ";", "|")
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))
#: Bytes that are looked at to find a text file's encoding and delimiter.
_HEAD = 1 << 16
#: More than the arrays of a table of results can take.
MOST_NPZ_BYTES = 1 << 30


@dataclass(frozen=True)
class RawTable:
    """A table as its file has it, and how its rows are counted in messages."""

    table: pa.Table
    unit: str
    first: int
    """The place of the first row: a CSV file's first line is its header."""
    notes: tuple[str, ...] = ()


def read_table_file(
    path: Path, options: TableOptions, *, progress: ReadingProgress | None = None
) -> RawTable:
    """The rows of a .csv, .tsv, .txt, .parquet, .jsonl or .npz file; `progress` hears of a text file's pieces."""
    if not path.is_file():
        raise UsageError(f"{path} is not a regular file. Give a .csv, .parquet, .jsonl or .npz file.")
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        return RawTable(_read_parquet(path, options), "row", 1)
    if name.endswith((".csv", ".tsv", ".txt")):
        return _read_text(path, options, progress)
    if name.endswith((".jsonl", ".ndjson")):
        return RawTable(_read_json_lines(path), "line", 1)
    if name.endswith(".npz"):
        return _read_npz(path)
    raise UsageError(
        f"{path} is not a store or a .csv, .tsv, .parquet, .jsonl or .npz file. Convert it to one of these."
    )


def _read_parquet(path: Path, options: TableOptions) -> pa.Table:
    try:
        return read_parquet_pieces(path, options)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise UsageError(f"{path} cannot be read as Parquet ({_first_line(error)}).") from None


def _read_json_lines(path: Path) -> pa.Table:
    try:
        table = pa_json.read_json(path)
        table.validate(full=True)  # pyarrow itself accepts texts and names that are not UTF-8
        _ = table.column_names
        return table
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise UsageError(f"{path} cannot be read as JSON lines ({_first_line(error)}).") from None


def _read_text(path: Path, options: TableOptions, progress: ReadingProgress | None) -> RawTable:
    head = _read_head(path)
    encoding = _encoding(head, path)
    lines = _complete_lines(head.decode(encoding, errors="replace"))
    # Stable-Baselines3 writes a line of JSON behind a number sign above the header.
    comments = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if comments == len(lines):
        raise UsageError(f"{path} holds no header line.")
    header = lines[comments]
    delimiter = max(_DELIMITERS, key=header.count)
    names = [name.strip().strip('"') for name in header.split(delimiter)]
    labels = [
        name for ours in LABEL_NAMES for name in (ours, *ALIASES[ours], options.columns.get(ours, ours))
    ]
    read_options = {"skip_rows": comments, "encoding": encoding}
    convert_options = {
        "null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": True,
        "decimal_point": options.decimal,
    }  # fmt: skip
    try:
        table = read_csv_pieces(
            path,
            names=next(csv.reader([header], delimiter=delimiter)),
            options=options,
            read_options=read_options,
            parse_options={"delimiter": delimiter},
            convert_options=convert_options,
            progress=progress,
        )
        if table is None:
            table = pa_csv.read_csv(
                path,
                read_options=pa_csv.ReadOptions(**read_options),
                parse_options=pa_csv.ParseOptions(delimiter=delimiter),
                convert_options=pa_csv.ConvertOptions(
                    column_types={name: pa.string() for name in labels if name in names}, **convert_options
                ),
            )
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise UsageError(f"{path} cannot be read as CSV ({_first_line(error)}).") from None
    stripped = [name.strip() for name in table.column_names]
    return RawTable(table.rename_columns(stripped), "line", 2 + comments, _notes(delimiter, encoding))


def _notes(delimiter: str, encoding: str) -> tuple[str, ...]:
    said = []
    if delimiter != ",":
        said.append(f"columns are separated by {'a tab' if delimiter == chr(9) else repr(delimiter)}")
    if encoding not in ("utf-8", "utf-8-sig"):
        said.append(f"the file is read as {encoding}")
    return tuple(said)


def _read_head(path: Path) -> bytes:
    try:
        with pa.input_stream(str(path)) as stream:
            return bytes(stream.read(_HEAD))
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path} cannot be read ({_first_line(error)}).") from None


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


def _complete_lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").splitlines()


def _read_npz(path: Path) -> RawTable:
    try:
        arrays = read_npz(path, most_bytes=MOST_NPZ_BYTES)
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as a numpy archive ({_first_line(error)}).") from None
    if "results" in arrays and "timesteps" in arrays:
        return _sb3_evaluations(path, arrays["results"])
    return _score_matrices(path, arrays)


def _sb3_evaluations(path: Path, results: np.ndarray) -> RawTable:  # type: ignore[type-arg]
    if results.ndim != 2 or not results.size or results.dtype.kind not in "fiu":
        raise UsageError(
            f"{path}: `results` must hold evaluations x episodes, but has shape {results.shape}."
        )
    returns = np.asarray(results[-1], dtype=np.float64)
    note = f"of {results.shape[0]} evaluations the last is read"
    return RawTable(pa.table({"episode_return": returns}), "episode", 1, (note,))


def _score_matrices(path: Path, arrays: dict[str, np.ndarray]) -> RawTable:  # type: ignore[type-arg]
    """Rliable's dictionary: one matrix of runs x games per agent. Each score counts as one episode of its run."""
    rows: dict[str, list[object]] = {"agent": [], "seed": [], "game": [], "episode_return": []}
    for agent, scores in arrays.items():
        if scores.ndim != 2 or scores.dtype.kind not in "fiu":
            raise UsageError(
                f"{path}: '{agent}' has shape {scores.shape} and is not a matrix of runs x games, and the file is not "
                "an evaluations.npz of Stable-Baselines3 either."
            )
        for (run, game), score in np.ndenumerate(scores):
            rows["agent"].append(agent)
            rows["seed"].append(str(run + 1))
            rows["game"].append(f"game {game + 1}")
            rows["episode_return"].append(float(score))
    return RawTable(pa.table(rows), "score", 1, ("games are numbered in the order of the matrices' columns",))


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
