"""Learning curves that an experiment tracker recorded: TensorBoard event files, or CSV exports of any tracker.

A source is written `GAME=FOLDER` or `GAME,AGENT=FOLDER`. Every subfolder with event files is one seed, and so is every
CSV file.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.report.figure_data import CURVE_POINTS, SeedCurve

#: Names under which libraries log the return during training, in the order in which they are looked for.
RETURN_TAGS = (
    "rollout/ep_rew_mean",
    "charts/episodic_return",
    "eval/mean_reward",
    "charts/mean_episode_return",
)

#: Column names of steps and of values in CSV exports, in lower case.
_STEPS, _VALUES = (
    ("step", "steps", "global_step", "timesteps", "total_timesteps"),
    ("value", "return", "reward"),
)

Floats = npt.NDArray[np.float64]
Run = tuple[Floats, Floats]


def read_learning_curves(sources: Sequence[str], *, tag: str | None = None) -> tuple[SeedCurve, ...]:
    """The curve of each source: the mean over its seeds where all of them have been logged.

    Args:
        sources: `GAME=FOLDER` or `GAME,AGENT=FOLDER`; FOLDER may be one CSV file.
        tag: the scalar in TensorBoard or the column in a CSV file; None looks for the usual names of the return.
    """
    return tuple(_read_source(source, tag) for source in sources)


def _read_source(source: str, tag: str | None) -> SeedCurve:
    label, equals, path = source.partition("=")
    game, _, agent = label.partition(",")
    if not (game and equals and path):
        raise UsageError(f"'{source}' does not name learning curves: write GAME=FOLDER or GAME,AGENT=FOLDER.")
    folder = Path(path)
    if not folder.exists():
        raise UsageError(
            f"There are no learning curves at {folder}: give a folder of event files or CSV files."
        )
    files = sorted(folder.rglob("*.csv")) if folder.is_dir() else [folder]
    runs = [_read_csv(file, tag) for file in files]
    events = sorted({file.parent for file in folder.rglob("*tfevents*")}) if folder.is_dir() else []
    runs += [run for one in events if (run := _read_events(one, tag)) is not None]
    if not runs:
        names = tag or ", ".join(RETURN_TAGS)
        raise UsageError(
            f"{folder} has neither CSV files nor event files with {names}: name the scalar with --curve-tag."
        )
    return _over_seeds(game, agent or folder.stem, runs, folder)


def _read_events(folder: Path, tag: str | None) -> Run | None:
    """The scalar `tag` of one run, or None if it was not logged there."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        raise MissingExtraError('Event files need TensorBoard: pip install "gapfloor[train]".') from None
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    known = events.Tags()["scalars"]
    chosen = next((name for name in ((tag,) if tag else RETURN_TAGS) if name in known), None)
    if chosen is None:
        return None
    points = events.Scalars(chosen)
    return np.array([point.step for point in points], float), np.array(
        [point.value for point in points], float
    )


def _read_csv(file: Path, tag: str | None) -> Run:
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            rows = list(csv.DictReader(opened))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{file} cannot be read as a CSV file ({error}).") from None
    columns = {name.strip().lower(): name for name in (rows[0] if rows else {}) if name}
    steps = next((columns[name] for name in _STEPS if name in columns), None)
    wanted = (tag.lower(),) if tag else (*RETURN_TAGS, *_VALUES)
    values = next((columns[name] for name in wanted if name in columns), None)
    if steps is None or values is None:
        raise UsageError(
            f"{file} has the columns {', '.join(columns.values()) or 'none'}: it needs a step ({', '.join(_STEPS)}) "
            f"and a value ({', '.join(wanted)}); name the column with --curve-tag."
        )
    try:
        kept = [(float(row[steps]), float(row[values])) for row in rows if row[steps] and row[values]]
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file} has a step or value that is not a number ({error}).") from None
    table = np.array(kept, float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _over_seeds(game: str, agent: str, runs: Sequence[Run], folder: Path) -> SeedCurve:
    """The mean over seeds on a common grid: seeds log at steps of their own."""
    runs = [_cleaned(run) for run in runs]
    start = max(run[0][0] if run[0].size else math.inf for run in runs)
    end = min(run[0][-1] if run[0].size else -math.inf for run in runs)
    if not start < end:
        raise UsageError(
            f"The seeds in {folder} have no training steps in common: give the runs of one agent."
        )
    grid = np.linspace(start, end, CURVE_POINTS)
    values = np.stack([np.interp(grid, *run) for run in runs])
    n = len(runs)
    sem = values.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(grid.size, math.nan)
    return SeedCurve(
        game=game, mode="", budget="", agent=agent, n=n, steps=tuple(grid.tolist()),
        mean=tuple(values.mean(axis=0).tolist()), sem=tuple(sem.tolist()),
    )  # fmt: skip


def _cleaned(run: Run) -> Run:
    """Finite values in the order of steps; of several values at one step, the last."""
    steps, values = run
    finite = np.isfinite(steps) & np.isfinite(values)
    steps, values = steps[finite], values[finite]
    order = np.argsort(steps, kind="stable")
    steps, values = steps[order], values[order]
    last = np.append(np.diff(steps) > 0, True) if steps.size else np.zeros(0, bool)
    return steps[last], values[last]
