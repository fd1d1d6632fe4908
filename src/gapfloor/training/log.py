"""The training log, one row per update, as Parquet next to the checkpoint; and the checkpoints that a run has kept.

The log has equal bytes for equal runs. `in_loop_return` is the running mean of training episodes while the weights
change. It does not describe a single checkpoint and is never reported as a result. Times go to the `log/` folder of the
store, not here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapfloor.errors import UsageError
from gapfloor.records.atomic import write_atomically
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.stored_cell import read_run_log
from gapfloor.statistics.conventions import NAN
from gapfloor.training.checkpoint import read_header
from gapfloor.training.spec import TrainingSpec

#: Training episodes over which `in_loop_return` is the mean.
RECENT_EPISODES = 100


@dataclass(frozen=True)
class LogRow:
    """One update."""

    iteration: int
    """Updates done, from 1."""
    steps: int
    """Environment steps played, over all environments."""
    in_loop_return: float
    """Mean return of the last 100 training episodes (not a result); nan before the first ends."""
    in_loop_length: float
    """Their mean length in steps."""
    n_episodes: int
    """Training episodes that ended in this rollout."""
    entropy_nats: float
    """Policy entropy over raw actions on the rollout's states."""
    policy_loss: float
    """Clipped surrogate loss, mean over the update's minibatches."""
    value_loss: float
    """Value loss, mean over the update's minibatches."""
    entropy: float
    """As the loss saw it, over the update's minibatches."""
    old_approx_kl: float
    """Divergence of the new from the old policy, first-order estimate."""
    approx_kl: float
    """The same, low-variance estimate."""
    clip_fraction: float
    """Share of samples whose ratio was clipped."""
    explained_variance: float
    """1 - Var(return - value) / Var(return)."""
    gradient_norm: float
    """Before clipping."""
    learning_rate: float
    """Step size of this update."""


FIELDS = tuple(field.name for field in fields(LogRow))


def write_log(path: Path, rows: Sequence[LogRow], spec: TrainingSpec) -> None:
    """Write the whole log, with the run's identity in every row so that logs of many runs can be queried."""
    identity = {"run": spec.run, **spec.identity.labels}
    types = {**{name: pa.int64() if name == "seed" else pa.string() for name in identity}}
    types |= {field.name: pa.int64() if field.type == "int" else pa.float64() for field in fields(LogRow)}
    table = pa.Table.from_pylist(
        [identity | asdict(row) for row in rows], schema=pa.schema(list(types.items()))
    )
    write_atomically(path, lambda partial: pq.write_table(table, partial, compression="zstd"))


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
        size = int(min(total[i], RECENT_EPISODES))
        # The oldest update whose rollout still has an episode in the window.
        before = total[i] - size
        reach = i - int(np.searchsorted(total[: i + 1], before, side="right")) + 1 if size else 0
        rows.append(InLoop(int(steps[i]), float(means[i]) if size else NAN, size, reach))
    return tuple(rows)


def note_speed(store: Path, run: str, row: LogRow, steps_per_second: float) -> None:
    """Add the time and the speed of an update to the store's `log/`, where nothing is a result."""
    path = store / "log" / f"train-{run}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"time": time.time(), "iteration": row.iteration, "steps": row.steps}
    with open(path, "a", encoding="utf-8") as notes:
        notes.write(json.dumps(line | {"steps_per_second": round(steps_per_second, 1)}) + "\n")


@dataclass(frozen=True)
class KeptCheckpoint:
    """One checkpoint of a run."""

    path: Path
    steps: int
    label: str
    """The budget under which its cells are filed: the run's own for the last one, otherwise with the steps appended."""


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
