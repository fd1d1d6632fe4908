"""Small studies as rows of episodes: two agents, two seeds, two games, shared levels."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def episode_rows() -> list[dict]:
    rng = np.random.default_rng(5)
    runs = [
        {"budget": "8M", "agent": agent, "seed": seed, "rule": rule, "low": 2 + (agent == "a")}
        for agent in ("a", "b")
        for seed in (1, 2)
        for rule in ("sampled", "greedy")
    ]
    runs.append({"budget": None, "agent": None, "seed": None, "rule": "uniform", "low": 0})
    rows = []
    for game in ("coinrun", "heist"):
        for level_set, first in (("train", 0), ("test", 1000)):
            for draw in (0, 1):
                for level in (first + np.random.default_rng([draw, first]).integers(0, 6, 8)).tolist():
                    for run in runs:
                        row = {"game": game, "level_set": level_set, "draw": draw, "level_seed": level, **run}
                        low = row.pop("low")
                        rows.append({**row, "episode_return": float(rng.integers(low, low + 4))})
    return rows
