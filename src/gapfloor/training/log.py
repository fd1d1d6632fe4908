"""The training log: one row per update, as Parquet next to the checkpoint, with equal bytes for equal runs.

`in_loop_return` is the running mean of training episodes while the weights change. It does not describe a single
checkpoint and is never reported as a result. Times go to the `log/` folder of the store, not here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gapfloor.records.atomic import write_atomically
from gapfloor.training.spec import TrainingSpec


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

    def values(self) -> list[float]:
        """The fields as numbers, in order."""
        return [float(value) for value in astuple(self)]

    @classmethod
    def from_values(cls, values: Sequence[float]) -> LogRow:
        """The row of `values()`."""
        named = dict(zip(FIELDS, values, strict=True))
        whole = {field.name: int(named[field.name]) for field in fields(cls) if field.type == "int"}
        return cls(**{**named, **whole})  # type: ignore[arg-type]  # the whole ones are ints


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


def note_speed(store: Path, run: str, row: LogRow, steps_per_second: float) -> None:
    """Add the time and the speed of an update to the store's `log/`, where nothing is a result."""
    path = store / "log" / f"train-{run}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"time": time.time(), "iteration": row.iteration, "steps": row.steps}
    with open(path, "a", encoding="utf-8") as notes:
        notes.write(json.dumps(line | {"steps_per_second": round(steps_per_second, 1)}) + "\n")
