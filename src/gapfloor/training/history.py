"""A run's checkpoints over its training, and what its training log says at each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gapfloor.errors import UsageError
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.schema import read_run_log
from gapfloor.statistics.conventions import NAN
from gapfloor.training.checkpoint import read_header

#: The last training episodes whose mean the log calls `in_loop_return` (gapfloor.training.resume_state).
WINDOW = 100


@dataclass(frozen=True)
class KeptCheckpoint:
    """One checkpoint of a run."""

    path: Path
    steps: int
    label: str
    """The budget under which its cells are filed: the run's own for the last one, otherwise with the steps appended."""


@dataclass(frozen=True)
class InLoop:
    """The training log at one checkpoint."""

    steps: int
    episode_return: float
    """Mean of the last training episodes, while the weights were changing."""
    n_episodes: int
    """How many episodes that mean has: 100, or fewer at the start."""
    n_updates: int
    """How many updates the window covers: its episodes were played by that many sets of weights."""


@dataclass(frozen=True)
class History:
    """The contents of a run's folder."""

    name: str
    header: Mapping[str, Any]
    kept: tuple[KeptCheckpoint, ...]
    log: tuple[InLoop, ...]
    notes: tuple[str, ...] = ()


def read_history(folder: str | Path) -> History:
    """The checkpoints of `history/`, the last one, and the log of a run's folder."""
    path = Path(folder)
    last = path / "checkpoint.safetensors"
    if not last.is_file():
        raise UsageError(f"{path} is not a run's folder: it must hold checkpoint.safetensors and history/.")
    header = read_header(last)
    found = {int(read_header(file)["steps"]): file for file in sorted((path / "history").glob("*.weights"))}
    done = header.get("iteration", 0) >= header.get("n_updates", 0)
    notes = []
    if not done:
        notes.append(
            f"{path.name} is still being trained ({header['steps']:,} steps so far): its newest checkpoint is left out."
        )
    if done:
        found[int(header["steps"])] = last
    if len(found) < 2:
        raise UsageError(
            f"{path} keeps {len(found)} checkpoint{'s' if len(found) != 1 else ''} that can be measured: train with "
            "gapfloor train --checkpoint-every N to keep checkpoints during training."
        )
    run = RunIdentity.from_header(header)
    final = max(found) if done else -1
    kept = tuple(
        KeptCheckpoint(file, steps, run.budget if steps == final else f"{run.budget}@{steps}")
        for steps, file in sorted(found.items())
    )
    return History(run.name, header, kept, read_in_loop(path / "log.parquet"), tuple(notes))


def read_in_loop(path: Path) -> tuple[InLoop, ...]:
    """The in-loop mean at every update, with the size and reach of its window; empty without a log."""
    if not path.is_file():
        return ()
    try:
        table = read_run_log(
            path, {"steps": pa.int64(), "in_loop_return": pa.float64(), "n_episodes": pa.int64()}
        )
        if table["steps"].null_count or table["n_episodes"].null_count:
            raise pa.ArrowInvalid("a number of steps or episodes is missing")
    except (pa.ArrowException, OSError, KeyError) as error:
        raise UsageError(f"{path} cannot be read as a training log ({str(error).splitlines()[0]}).") from None
    steps, means, ended = (column.to_numpy() for column in table.columns)
    total = np.cumsum(ended)
    rows = []
    for i in range(len(steps)):
        size = int(min(total[i], WINDOW))
        # The oldest update whose rollout still has an episode in the window.
        before = total[i] - size
        reach = i - int(np.searchsorted(total[: i + 1], before, side="right")) + 1 if size else 0
        rows.append(InLoop(int(steps[i]), float(means[i]) if size else NAN, size, reach))
    return tuple(rows)
