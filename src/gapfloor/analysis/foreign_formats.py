"""Other people's formats: Stable-Baselines3 files in, rliable's score matrices out."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from gapfloor.analysis.episodes import Inputs, read_inputs, tidy
from gapfloor.analysis.results import AnalysisResults
from gapfloor.analysis.table_files import MOST_NPZ_BYTES
from gapfloor.errors import UsageError, unknown_name
from gapfloor.input_files import check_input_file, read_input_text
from gapfloor.npy_bytes import read_npz
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.statistics.conventions import Floats
from gapfloor.statistics.normalised import has_scale, normalised_score

_LABELS = ("game", "mode", "budget", "agent", "seed", "rule", "level_set", "draw")
_NEEDED = ("game", "rule", "level_set")


def read_sb3_evaluations(path: Path, labels: Mapping[str, str]) -> pa.Table:
    """The last evaluation in an `evaluations.npz` of Stable-Baselines3's EvalCallback, as episodes."""
    try:
        arrays = read_npz(check_input_file(path), most_bytes=MOST_NPZ_BYTES)
        results = np.asarray(arrays["results"], dtype=np.float64)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is not an evaluations.npz of Stable-Baselines3 ({error}).") from None
    if results.ndim != 2 or not results.size:
        raise UsageError(
            f"{path}: `results` must hold evaluations x episodes, but has shape {results.shape}."
        )
    return _episodes(results[-1], labels, str(path))


def read_monitor(path: Path, labels: Mapping[str, str]) -> pa.Table:
    """The episodes of a Stable-Baselines3 `monitor.csv` (columns r, l, t after a comment line)."""
    lines = [line for line in read_input_text(path).splitlines() if not line.startswith("#")]
    try:
        reader = csv.DictReader(lines)
        if "r" not in (reader.fieldnames or ()):
            raise UsageError(f"{path} has no column 'r': it is not a monitor file of Stable-Baselines3.")
        returns = np.array([float(row["r"]) for row in reader])
    except csv.Error as error:
        raise UsageError(f"{path} cannot be read as a CSV file ({error}).") from None
    except (TypeError, ValueError):
        raise UsageError(f"{path}: the column 'r' holds something that is not a number.") from None
    return _episodes(returns, labels, str(path))


def _episodes(returns: Floats, labels: Mapping[str, str], source: str) -> pa.Table:
    for name in labels:
        if name not in _LABELS:
            raise unknown_name("label", name, _LABELS)
    for name in _NEEDED:
        if not labels.get(name):
            raise UsageError(f"{source} needs the label '{name}' (for example {name}=...).")
    defaults = {"mode": "easy", "budget": "", "agent": "", "seed": "", "draw": "0"}
    filled = {**defaults, **labels}
    columns: dict[str, object] = {name: [filled[name]] * returns.size for name in _LABELS}
    return pa.table({**columns, "episode_return": returns})


def read_labelled(source: Path | None, specifications: Sequence[str]) -> Inputs:
    """Episodes of labelled SB3 files ("game=heist,rule=greedy,...:file"), after those of `source`."""
    tables = []
    for text in specifications:
        labels_text, separator, file = text.partition(":")
        pairs = [pair.partition("=") for pair in labels_text.split(",") if pair]
        if not separator or not file or not all(equals for _, equals, _ in pairs):
            raise UsageError(f"--sb3 {text!r} is not LABELS:FILE: write game=heist,rule=greedy,...:path.")
        labels = {name.strip(): value.strip() for name, _, value in pairs}
        read = read_sb3_evaluations if file.endswith(".npz") else read_monitor
        tables.append(read(Path(file), labels))
    if source is not None:
        tables.insert(0, _as_table(read_inputs(source)))
    table = pa.concat_tables(tables, promote_options="default")
    return tidy(table, source="the episodes", unit="row", first=1)


def _as_table(inputs: Inputs) -> pa.Table:
    columns: dict[str, object] = {
        name: np.array(names, dtype=object)[codes] for name, (codes, names) in inputs.labels.items()
    }
    del columns["reference"]
    return pa.table({**columns, "episode_return": inputs.returns, "level_seed": inputs.level_seed})


def rliable_scores(results: AnalysisResults) -> dict[str, Floats]:
    """Rliable's input: one runs x games matrix of normalised scores per agent, budget, rule and level set.

    Games that have no published scale are left out, and so are runs beyond the smallest number that every game
    has, because the matrix must be full. The names are "agent|budget|rule|level set"; games stand in
    alphabetical order.
    """
    cells: dict[str, dict[str, list[float]]] = {}
    for row in results.gaps:
        if not has_scale(row.game, mode=row.mode):
            continue
        for run in row.runs:
            for level_set, value in (("train", run.train), ("test", run.test)):
                key = f"{run.agent}|{row.budget}|{row.rule}|{level_set}"
                scores = cells.setdefault(key, {}).setdefault(row.game, [])
                scores.append(normalised_score(value, row.game, mode=row.mode))
    matrices = {}
    for key, games in cells.items():
        n = min(len(scores) for scores in games.values())
        matrices[key] = np.array([games[game][:n] for game in sorted(games)]).T
    return matrices


def write_scores(path: Path, scores: Mapping[str, Floats]) -> None:
    """Write score matrices as an .npz file that `numpy.load` opens."""
    buffer = io.BytesIO()
    np.savez(buffer, **scores)
    write_bytes_atomically(path, buffer.getvalue())
