"""A run's checkpoints over its training, and what its training log says at each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.errors import UsageError
from gapfloor.records.run_identity import RunIdentity
from gapfloor.training.checkpoint import read_header
from gapfloor.training.log import InLoop, read_in_loop


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
