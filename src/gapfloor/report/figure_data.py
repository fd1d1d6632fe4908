"""What the figures show, taken from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapfloor.analysis.episodes import Inputs
from gapfloor.analysis.labels import combined_codes
from gapfloor.records.run_identity import read_run_identity
from gapfloor.records.run_log import read_run_log
from gapfloor.report.findings import FLOOR

#: A panel of per-level returns with more points than this is thinned evenly, to keep the page small.
MOST_LEVELS = 400
#: Points of a training curve; a run of 8M steps logs 1,953.
CURVE_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class LevelPoint:
    """One level: what the runs and the floor got on it."""

    level_seed: int
    policy: float
    floor: float
    n: int
    """Policy episodes on the level."""
    floor_n: int


@dataclass(frozen=True, kw_only=True)
class LevelPanel:
    """The levels of one game, budget, rule and level set."""

    game: str
    mode: str
    agent: str
    """Empty where the runs of all agents are pooled."""
    budget: str
    rule: str
    level_set: str
    points: tuple[LevelPoint, ...]
    n_levels: int
    """Levels played by both, before thinning."""
    above: int
    """Levels on which the runs' mean exceeds the floor's."""


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
    sem: tuple[float, ...]
    """NaN with one seed."""


def level_panels(
    inputs: Inputs, *, rules: tuple[str, ...], is_pooled: bool, level_set: str = "test"
) -> tuple[LevelPanel, ...]:
    """Per-level means of runs, of each agent unless they are pooled, against the floor's on the same level set."""
    labels = inputs.labels
    sets = labels["level_set"][1]
    if level_set not in sets or FLOOR not in labels["reference"][1] or "" not in labels["reference"][1]:
        return ()
    known = (inputs.level_seed >= 0) & (labels["level_set"][0] == sets.index(level_set))
    is_floor = known & (labels["reference"][0] == labels["reference"][1].index(FLOOR))
    is_run = known & (labels["reference"][0] == labels["reference"][1].index(""))
    floors: dict[tuple[str, str], tuple[npt.NDArray[Any], ...]] = {}
    for rows, (game, mode) in groups_of(inputs, is_floor, ("game", "mode")):
        floors[game, mode] = _means(inputs, rows)
    panels = []
    names = ("game", "mode", "budget", "rule", *(() if is_pooled else ("agent",)))
    for rows, values in groups_of(inputs, is_run, names):
        named = {"agent": "", "level_set": level_set, **dict(zip(names, values, strict=True))}
        floor = floors.get((named["game"], named["mode"]))
        if named["rule"] in rules and floor is not None:
            panels.append(_panel(_means(inputs, rows), floor, named))
    return tuple(panel for panel in panels if panel.points)


def _panel(
    runs: tuple[npt.NDArray[Any], ...],
    floor: tuple[npt.NDArray[Any], ...],
    labels: dict[str, str],
) -> LevelPanel:
    shared, at_run, at_floor = np.intersect1d(runs[0], floor[0], return_indices=True)
    step = max(1, math.ceil(shared.size / MOST_LEVELS))
    points = tuple(
        LevelPoint(
            level_seed=int(shared[i]),
            policy=float(runs[1][at_run[i]]),
            floor=float(floor[1][at_floor[i]]),
            n=int(runs[2][at_run[i]]),
            floor_n=int(floor[2][at_floor[i]]),
        )
        for i in range(0, shared.size, step)
    )
    above = int(np.count_nonzero(runs[1][at_run] > floor[1][at_floor]))
    return LevelPanel(**labels, points=points, n_levels=int(shared.size), above=above)


def groups_of(
    inputs: Inputs, chosen: npt.NDArray[Any], names: tuple[str, ...]
) -> list[tuple[npt.NDArray[Any], tuple[str, ...]]]:
    """The rows among `chosen` that share their labels `names`, with these labels."""
    at = np.flatnonzero(chosen)
    if not at.size:
        return []
    key = combined_codes([(inputs.labels[name][0][at], inputs.labels[name][1]) for name in names])
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    groups = []
    for part in np.split(at[order], cuts):
        groups.append(
            (part, tuple(inputs.labels[name][1][inputs.labels[name][0][part[0]]] for name in names))
        )
    return groups


def _means(inputs: Inputs, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
    seeds, place = np.unique(inputs.level_seed[rows], return_inverse=True)
    count = np.bincount(place)
    return seeds, np.bincount(place, weights=inputs.returns[rows]) / count, count


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
    values = np.stack([entropy[:length] for _, entropy in members])
    keep = np.unique(np.linspace(0, length - 1, min(length, CURVE_POINTS)).astype(int))
    n = len(members)
    sem = values.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(length, math.nan)
    return SeedCurve(
        game=key[0],
        mode=key[1],
        budget=key[2],
        agent=key[3],
        n=n,
        steps=tuple(members[0][0][keep].tolist()),
        mean=tuple(values.mean(axis=0)[keep].tolist()),
        sem=tuple(sem[keep].tolist()),
    )
