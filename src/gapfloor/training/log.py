"""The training log: one row per update, as Parquet next to the checkpoint, with equal bytes for equal runs.

`in_loop_return` is the running mean of training episodes while the weights change. It does not describe a single
checkpoint and is never reported as a result. Times go to the `log/` folder of the store, not here.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

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


class TrainingMonitor:
    """What a person watches, apart from the results: TensorBoard scalars, and steps per second with the time."""

    def __init__(self, store: Path, run: str, *, from_steps: int, with_tensorboard: bool) -> None:
        self._lines = store / "log" / f"train-{run}.jsonl"
        self._lines.parent.mkdir(parents=True, exist_ok=True)
        self._board: Any = None
        if with_tensorboard:
            with contextlib.suppress(ImportError):
                from torch.utils.tensorboard import SummaryWriter

                # Scalars after the point of resumption come from a process that was killed.
                self._board = SummaryWriter(
                    str(store / "log" / "tensorboard" / run), purge_step=from_steps + 1
                )

    def write(
        self, row: LogRow, *, episodes: Sequence[tuple[int, float, int]], steps_per_second: float
    ) -> None:
        """Record one update: CleanRL's keys in TensorBoard, and a line with the time in the JSON lines file."""
        line = {"time": time.time(), "iteration": row.iteration, "steps": row.steps}
        with open(self._lines, "a") as handle:
            handle.write(json.dumps(line | {"steps_per_second": round(steps_per_second, 1)}) + "\n")
        if self._board is None:
            return
        for at, episode_return, length in episodes:
            self._board.add_scalar("charts/episodic_return", episode_return, at)
            self._board.add_scalar("charts/episodic_length", length, at)
        scalars = {
            "charts/learning_rate": row.learning_rate, "charts/SPS": steps_per_second,
            "charts/policy_entropy": row.entropy_nats, "losses/value_loss": row.value_loss,
            "losses/policy_loss": row.policy_loss, "losses/entropy": row.entropy,
            "losses/old_approx_kl": row.old_approx_kl, "losses/approx_kl": row.approx_kl,
            "losses/clipfrac": row.clip_fraction, "losses/explained_variance": row.explained_variance,
        }  # fmt: skip
        for key, value in scalars.items():
            self._board.add_scalar(key, value, row.steps)
        self._board.flush()

    def close(self) -> None:
        """Close TensorBoard's file."""
        if self._board is not None:
            self._board.close()
