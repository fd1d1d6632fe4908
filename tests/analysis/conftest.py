"""The paper-shaped study, read once, and small episode tables to break."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))


@pytest.fixture(scope="session")
def paper():
    import paper_shaped

    return paper_shaped.load()


@pytest.fixture(scope="session")
def paper_results(paper):
    from gapfloor.analysis import analyse

    return analyse(paper.episodes, cells=paper.cells)


def small_rows(
    *, games=("coinrun", "heist"), agents=("a", "b"), seeds=(1, 2), draws=(0, 1), episodes=8
) -> list[dict]:
    """Episodes of a little study with a floor, as rows."""
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
                        low = {"uniform": 0, "sampled": 2, "greedy": 3}[run["rule"]]
                        rows.append({**place, **run, "episode_return": float(rng.integers(low, low + 4))})
    return rows


@pytest.fixture
def rows():
    return small_rows()


@pytest.fixture
def as_table():
    return pa.Table.from_pylist
