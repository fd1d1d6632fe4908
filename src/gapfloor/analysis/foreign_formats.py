"""Results as other tools leave them: JSON documents, numpy archives, logs, and folders of such files.

A format is an entry of `_FORMATS`: how it is recognised, and its rows. What a file does not say, and its format does
not imply, is left to the user's `--label`.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gapfloor.analysis.column_names import LABEL_NAMES, TableOptions
from gapfloor.errors import UsageError, shortened
from gapfloor.input_files import read_input_text
from gapfloor.npy_bytes import DAMAGED_ZIP, read_npz
from gapfloor.settings import parse_json, shipped
from gapfloor.statistics.conventions import Floats

#: More than the arrays or documents of a table of results can take.
MOST_BYTES = 1 << 30
#: A table of means with more rows holds episodes.
MOST_MEANS = 10_000
_MOST_JSON = 1 << 28
_MOST_FILES = 10_000
#: More games and scores than a benchmark has: a few compressed bytes can declare any number of them.
_MOST_GAMES, _MOST_SCORES = 1_000, 1_000_000
#: Rows may each have columns of their own: a few bytes per row would become a table of any size.
_MOST_COLUMNS, _MOST_CELLS = 10_000, 10_000_000
#: A longer name is not that of a run, and finding its parts takes time that grows with the square of its length.
_MOST_NAME = 250
#: Files of a folder, by name: the first pattern that matches anything is read.
_IN_FOLDERS = (
    "*monitor.csv", "evaluations.npz", "eval_info.json", "*.eval", "*.csv", "*.parquet", "*.jsonl", "*.json",
)  # fmt: skip
#: Episodes at the end of a training log that count as those of its last policy, as Stable-Baselines3 counts.
LAST_EPISODES = 100
_ZSTANDARD = 93


@dataclass(frozen=True)
class RawTable:
    """A table as its file has it, and how its rows are counted in messages."""

    table: pa.Table
    unit: str = "row"
    first: int = 1
    """The place of the first row: a CSV file's first line is its header."""
    notes: tuple[str, ...] = ()


Rows = list[dict[str, Any]]


def read_document(path: Path, options: TableOptions) -> RawTable:
    """The rows of a JSON document, a numpy archive, or a log of inspect_ai, which is an archive of such documents."""
    suffix = path.suffix.lower()
    if suffix == ".npz":
        try:
            document: Any = read_npz(path, most_bytes=MOST_BYTES)
        except ValueError as error:
            raise UsageError(f"{path} cannot be read as a numpy archive ({shortened(str(error))}).") from None
    elif suffix == ".eval":
        header, samples = (_archived_json(path, name) for name in ("header.json", "summaries.json"))
        document = {**header, "samples": samples} if isinstance(header, dict) else {}
    else:
        document = parse_json(read_input_text(path, most_bytes=_MOST_JSON), source=str(path))
    for kind, is_it, rows_of, note in _FORMATS:
        try:
            if not is_it(document):
                continue
            table = _table(rows_of(document), options)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError, OverflowError) as error:
            why = error if isinstance(error, ValueError) else repr(error)
            raise UsageError(
                f"{path} looks like {kind}, but cannot be read ({shortened(str(why))})."
            ) from None
        return RawTable(table, "entry", 1, (note,) if note else ())
    known = ", ".join(kind for kind, *_ in _FORMATS)
    kind = "a numpy archive" if suffix == ".npz" else "JSON"
    raise UsageError(f"{path} is {kind}, but none of these: {known}. Convert it to a table.")


def _table(rows: Rows, options: TableOptions) -> pa.Table:
    """The rows, without constants that the user states otherwise."""
    names = dict.fromkeys(name for row in rows for name in row if name not in options.constants)
    check_extent(len(rows), len(names), most=2 * sum(map(len, rows)))
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})


def check_extent(n_rows: int, n_columns: int, *, most: int = 0) -> None:
    """Refuse a table that would be far larger than what was written: more than `most` cells, and than any needs."""
    if n_columns > _MOST_COLUMNS or n_rows * n_columns > max(most, _MOST_CELLS):
        raise UsageError(
            f"The table would have {n_rows:,} rows and {n_columns:,} different columns, most of them empty. Give every "
            "row the same columns."
        )


def _archived_json(path: Path, name: str) -> Any:
    """A document of a zip archive, at most as large as one outside; zipfile itself cannot read Zstandard yet."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.namelist().count(name) > 1:
                raise ValueError(f"{name} is in it twice, and readers differ in which one they take")
            entry = archive.getinfo(name)
            if entry.file_size > _MOST_JSON:
                raise ValueError(f"{name} unpacks to {entry.file_size:,} bytes")
            if entry.compress_type != _ZSTANDARD:
                with archive.open(entry) as file:
                    content = file.read(_MOST_JSON + 1)
            else:
                with path.open("rb") as raw:
                    raw.seek(entry.header_offset + 26)
                    raw.seek(sum(struct.unpack("<HH", raw.read(4))), 1)
                    packed = pa.BufferReader(raw.read(entry.compress_size))
                content = bytes(pa.CompressedInputStream(packed, "zstd").read(_MOST_JSON + 1))
    except (*DAMAGED_ZIP, KeyError, struct.error) as error:
        raise UsageError(f"{path} cannot be read as a log of inspect_ai ({shortened(str(error))}).") from None
    if len(content) > _MOST_JSON:
        raise UsageError(f"{path}: {name} unpacks to more than {_MOST_JSON:,} bytes.")
    return parse_json(content, source=f"{path}: {name}")


def _inspect_rows(document: Mapping[str, Any]) -> Rows:
    """One row per sample and epoch of a log of inspect_ai."""
    about, plan = document["eval"], document.get("plan") or {}
    temperature = (about.get("model_generate_config") or {}).get("temperature")
    temperature = (plan.get("config") or {}).get("temperature") if temperature is None else temperature
    places = {
        name: at for at, name in enumerate(dict.fromkeys(str(each["id"]) for each in document["samples"]))
    }
    rows = []
    for sample in document["samples"]:
        score = next(iter((sample.get("scores") or {}).values()), None)
        if score is None:
            raise ValueError(f"the sample {sample['id']} has no score, status {document.get('status')}")
        value = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}.get(str(score["value"]), score["value"])
        rows.append(
            {
                "game": about["task"], "agent": about["model"], "seed": "1", "level_set": "test",
                "rule": "own" if temperature is None else f"temperature:{temperature:g}", "draw": sample["epoch"],
                "level_seed": places[str(sample["id"])], "episode_return": float(value),
            }
        )  # fmt: skip
    return rows


def _lerobot_rows(document: Mapping[str, Any]) -> Rows:
    """One row per episode of an eval_info.json, of one task or of many."""
    shared = {"seed": "1", "rule": "own", "level_set": "test"}
    rows: Rows = [
        {
            **shared,
            "level_seed": each["seed"],
            "episode_return": each["sum_reward"],
            "success": each["success"],
        }
        for each in document.get("per_episode", ())
    ]
    for task in document.get("per_task", ()):
        game = f"{task['task_group']}_{task['task_id']}"
        scores = zip(task["metrics"]["sum_rewards"], task["metrics"]["successes"], strict=True)
        rows += [{**shared, "game": game, "episode_return": score, "success": done} for score, done in scores]
    return [{**row, "success": float(row["success"])} for row in rows]


def score_rows(agents: Mapping[str, Any]) -> Rows:
    """Rliable's dictionary: per agent a matrix of runs x games, or games with a score per run."""
    rows: Rows = []
    for agent, scores in agents.items():
        if isinstance(scores, Mapping):
            by_game = {str(game): list(each) for game, each in scores.items()}
        else:
            matrix = _matrix(agent, scores)
            if matrix.size + len(rows) > _MOST_SCORES or matrix.shape[-1] > _MOST_GAMES:
                raise UsageError(
                    f"The scores of '{shortened(agent)}' have the shape {matrix.shape}: a matrix of runs x games has "
                    f"at most {_MOST_GAMES:,} games, and a file at most {_MOST_SCORES:,} scores."
                )
            by_game = {f"game {at + 1}": list(column) for at, column in enumerate(matrix.T)}
        for game, values in by_game.items():
            rows += [
                {"agent": agent, "seed": str(run + 1), "game": game, "episode_return": float(value)}
                for run, value in enumerate(values)
            ]
    return rows


def _matrix(name: str, values: Any) -> Floats:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"'{shortened(name)}' has the shape {matrix.shape} and is not a matrix")
    return matrix


def _column_rows(document: Mapping[str, Mapping[str, Any]]) -> Rows:
    """The rows of pandas' `to_json`: per column its values by the name of the row."""
    names = list(dict.fromkeys(name for column in document.values() for name in column))
    check_extent(len(names), len(document), most=sum(map(len, document.values())))
    is_numbered = names == [str(at) for at in range(len(names))]
    return [
        {**({} if is_numbered else {"": name}), **{key: column.get(name) for key, column in document.items()}}
        for name in names
    ]


def _are(values: Iterable[Any], kind: Any) -> bool:
    found = list(values)
    return bool(found) and all(isinstance(each, kind) for each in found)


def _has(document: Any, *names: str) -> bool:
    return isinstance(document, dict) and all(name in document for name in names)


_NUMBERED = "games are numbered in the order of the matrices' columns"
_SAMPLES = "samples count as held-out levels, epochs as draws, and the log as one run"
_LAST = "of several evaluations the last is read"
_ROBOT = "evaluation episodes count as held-out; returns are sum_reward (or what --columns episode_return=NAME names)"
#: What a document is, how that is seen, its rows, and what was taken for granted.
_FORMATS: tuple[tuple[str, Callable[[Any], bool], Callable[[Any], Rows], str], ...] = (
    ("a log of inspect_ai", lambda d: _has(d, "eval", "samples"), _inspect_rows, _SAMPLES),
    ("LeRobot's eval_info.json", lambda d: _has(d, "per_episode") or _has(d, "per_task"), _lerobot_rows, _ROBOT),
    ("an evaluations.npz of Stable-Baselines3",
        lambda d: _has(d, "results", "timesteps") and _are(d.values(), np.ndarray), lambda d: [
        {"episode_return": float(value)} for value in _matrix("results", d["results"])[-1]], _LAST),
    ("rliable's matrices", lambda d: _has(d) and _are(d.values(), np.ndarray), score_rows, _NUMBERED),
    ("a list of rows", lambda d: isinstance(d, list) and _are(d, dict), list, ""),
    ("rliable's scores", lambda d: _has(d) and _are(d.values(), list) and _are(
        (each for rows in d.values() for each in rows), list), score_rows, _NUMBERED),
    ("rliable's scores by game", lambda d: _has(d) and _are(d.values(), dict) and _are(
        (each for games in d.values() for each in games.values()), list), score_rows, ""),
    ("columns", lambda d: _has(d) and _are(d.values(), dict), _column_rows, ""),
    ("lists of columns", lambda d: _has(d) and _are(d.values(), list), lambda d: [
        dict(zip(d, row, strict=True)) for row in zip(*d.values(), strict=True)], ""),
)  # fmt: skip


def read_folder(folder: Path, options: TableOptions, read: Callable[..., RawTable]) -> RawTable:
    """The files of a folder as one table: a file per run, with the labels that its path states.

    A part of a path such as seed=3 is a label. So are the names of runs of CleanRL and of RL Baselines3 Zoo, and the
    env_id in a monitor file.
    """
    try:
        found = next((files for pattern in _IN_FOLDERS if (files := sorted(folder.rglob(pattern)))), [])
    except OSError as error:  # e.g. below /proc
        raise UsageError(
            f"A folder below {folder} cannot be listed ({error}). Give a folder of results."
        ) from error
    if not found or len(found) > _MOST_FILES:
        seen = f"holds {len(found):,} files" if found else "holds no cells and no results of other tools"
        raise UsageError(f"{folder} {seen}. Give a store, a file of results or a folder of such files.")
    tables, notes = [], [f"{len(found)} files of the folder are read, e.g. {found[0].relative_to(folder)}"]
    runs = {run: str(at + 1) for at, run in enumerate(dict.fromkeys(path.parent for path in found))}
    for path in found:
        raw = read(path, options)
        notes += raw.notes
        labels = {"seed": runs[path.parent], **_labels_in(path, folder)}
        table = raw.table
        if path.name.endswith("monitor.csv"):
            labels |= _monitor_header(path)
            if options.step == "last":
                table = table.slice(max(0, table.num_rows - LAST_EPISODES))
        for name, value in labels.items():
            if name not in (*table.column_names, *options.constants):
                table = table.append_column(name, pa.array([value] * table.num_rows))
        tables.append(table.drop_columns([n for n in table.column_names if pa.types.is_null(table[n].type)]))
    if found[0].name.endswith("monitor.csv"):
        notes.append(
            f"the last {LAST_EPISODES} episodes of each file are read" if options.step else
            "every episode since a monitor file was opened counts; of a training run, --step last reads the last "
            f"{LAST_EPISODES} per file"
        )  # fmt: skip
    columns = {name for each in tables for name in each.column_names}
    n_cells = sum(each.num_rows * each.num_columns for each in tables)
    check_extent(sum(each.num_rows for each in tables), len(columns), most=4 * n_cells)
    try:
        joined = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:  # e.g. numbers in one file and text in another
        raise UsageError(
            f"The files of {folder} do not have the same columns ({shortened(str(error))}). Correct the file that "
            "differs, or move it elsewhere."
        ) from None
    return RawTable(joined, notes=tuple(dict.fromkeys(notes)))


def _labels_in(path: Path, folder: Path) -> dict[str, str]:
    """What a path says of a run: seed=3 is a label, and folders may have the name of a run."""
    stated = (part.partition("=") for part in path.relative_to(folder).with_suffix("").as_posix().split("/"))
    named = {name: value for name, equals, value in stated if equals and name in LABEL_NAMES}
    return {**_named_run(path.relative_to(folder.parent).parent.as_posix()), **named}


def _monitor_header(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        line = file.readline(1 << 16).decode("utf-8", errors="replace")
    try:
        name = json.loads(line.removeprefix("#"))["env_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {"game": str(name)} if name and name != "None" else {}


def run_labels(name: str) -> dict[str, str]:
    """What the name of a run says: of CleanRL's all of game, agent and seed; of others, perhaps the seed.

    >>> run_labels("CartPole-v1__ppo__3__1674672938")
    {'game': 'CartPole-v1', 'agent': 'ppo', 'seed': '3'}
    """
    return _named_run(name) or {"agent": name}


def _named_run(name: str) -> dict[str, str]:
    patterns = shipped("data/table_names.toml")["runs"] if len(name) <= _MOST_NAME else ()
    match = next((found for pattern in patterns if (found := re.fullmatch(pattern, name))), None)
    return match.groupdict() if match else {}
