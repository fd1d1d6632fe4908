"""Invented episodes, cells and leaks, small enough to calculate with by hand. Nothing here is a measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gapfloor.levels.overlap import Leakage, LevelOverlap, LevelPair
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.store import Store

LABELS = {
    "game": "coinrun", "mode": "easy", "budget": "8M", "agent": "impala", "seed": 1, "reference": "",
    "rule": "sampled", "level_set": "train", "draw": 0,
}  # fmt: skip
CONTENT = {"policy": "abc", "slots": 16, "burn_in": 1, "episodes": 2, "levels": "0:200", "options": {}}
COLUMNS = {
    "slot": [0, 1],
    "index": [1, 1],
    "level_seed": [5, 9],
    "episode_return": [0.0, 10.0],
    "length": [7, 8],
}
RECORD = {"n_steps": 15, "entropy_raw": 2.5, "action_counts": [1, 2]}
_LOWEST = {"uniform": 0, "sampled": 2, "greedy": 3}


def write_cell(
    store: Store,
    name: str = "one",
    *,
    content: Mapping[str, Any] | None = None,
    columns: Mapping[str, Any] | None = None,
    record: Mapping[str, Any] | None = None,
    **labels: Any,
) -> None:
    """Write one invented cell; whatever is not given is the same in every cell."""
    store.write_cell(
        file_name=name,
        content={**CONTENT, **(content or {})},
        labels={**LABELS, **labels},
        columns=dict(columns or COLUMNS),
        record=dict(RECORD if record is None else record),
    )


def by_rule(run: Mapping[str, Any]) -> int:
    """The lowest return of a run when only its rule matters."""
    return _LOWEST[run["rule"]]


def by_agent(run: Mapping[str, Any]) -> int:
    """The lowest return of a run when agent `a` is better than agent `b`."""
    return 0 if run["rule"] == "uniform" else 2 + (run["agent"] == "a")


def small_rows(
    lowest: Callable[[Mapping[str, Any]], int] = by_rule,
    *,
    games: Sequence[str] = ("coinrun", "heist"),
    agents: Sequence[str] = ("a", "b"),
    seeds: Sequence[int] = (1, 2),
    draws: Sequence[int] = (0, 1),
    episodes: int = 8,
) -> list[dict[str, Any]]:
    """Episodes of a small study with a floor, as rows: all runs play the same levels."""
    rng = np.random.default_rng(5)
    runs = [
        {"budget": "8M", "agent": agent, "seed": seed, "rule": rule}
        for agent in agents
        for seed in seeds
        for rule in ("sampled", "greedy")
    ]
    runs.append({"budget": None, "agent": None, "seed": None, "rule": "uniform"})
    rows = []
    for game in games:
        for level_set, first in (("train", 0), ("test", 1000)):
            for draw in draws:
                levels = first + np.random.default_rng([draw, first]).integers(0, 6, episodes)
                for level in levels.tolist():
                    place = {"game": game, "level_set": level_set, "draw": draw, "level_seed": level}
                    for run in runs:
                        low = lowest(run)
                        rows.append({**place, **run, "episode_return": float(rng.integers(low, low + 4))})
    return rows


def leaked_levels(levels: Sequence[int], *, train: LevelSet, test: LevelSet, **counts: int) -> Leakage:
    """A report that these held-out levels of coinrun are training levels in disguise."""
    overlap = LevelOverlap(
        game="coinrun", mode="easy", engine="procgen", version="0.10.7", train=train, test=test,
        pairs=tuple(LevelPair(level, train.start, True, True) for level in levels), compared="", later="",
        **{"first_screen": 1, "first_frame": 1, "distinct_train": 2, "distinct_test": 3, **counts},
    )  # fmt: skip
    return Leakage((overlap,))
