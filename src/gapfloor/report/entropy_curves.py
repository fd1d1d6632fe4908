"""Entropy during training, from the logs of a store."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapfloor.records.run_identity import read_run_identity
from gapfloor.records.schema import read_run_log

#: Points of a training curve; a run of 8M steps logs 1,953.
CURVE_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class SeedCurve:
    """A quantity during the training of one agent, mean over its seeds."""

    game: str
    mode: str
    budget: str
    agent: str
    n: int
    steps: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...] = ()
    """One SEM below the mean; empty with one seed."""
    high: tuple[float, ...] = ()


_CURVE_COLUMNS = {name: pa.string() for name in ("game", "mode", "budget", "agent")} | {
    name: pa.float64() for name in ("steps", "entropy_nats")
}


def read_curves(store: Path) -> tuple[SeedCurve, ...]:
    """Entropy curves from the training logs of a store, one per game, budget and agent.

    The agent is the checkpoint's: logs of version 0.1 name the encoder, which blind and sighted runs share.
    """
    runs: dict[tuple[str, ...], list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]] = {}
    for path in sorted(store.glob("runs/*/log.parquet")):
        try:
            table = read_run_log(path, _CURVE_COLUMNS)
        except (pa.ArrowException, OSError, KeyError):
            continue
        if table.num_rows:
            identity = read_run_identity(path.parent)
            agent = identity.agent if identity else str(table["agent"][0].as_py())
            key = (*(str(table[name][0].as_py()) for name in ("game", "mode", "budget")), agent)
            runs.setdefault(key, []).append((table["steps"].to_numpy(), table["entropy_nats"].to_numpy()))
    return tuple(_curve(key, members) for key, members in runs.items())


def _curve(key: tuple[str, ...], members: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> SeedCurve:
    # Seeds log at the same steps; where one is still training, the curve ends where the shortest does.
    length = min(steps.size for steps, _ in members)
    keep = np.unique(np.linspace(0, length - 1, min(length, CURVE_POINTS)).astype(int))
    values = np.stack([entropy[keep] for _, entropy in members])
    n, mean = len(members), values.mean(axis=0)
    band = {}
    if n > 1:
        error = values.std(axis=0, ddof=1) / math.sqrt(n)
        band = {"low": tuple((mean - error).tolist()), "high": tuple((mean + error).tolist())}
    game, mode, budget, agent = key
    steps, means = tuple(members[0][0][keep].tolist()), tuple(mean.tolist())
    return SeedCurve(game=game, mode=mode, budget=budget, agent=agent, n=n, steps=steps, mean=means, **band)
