"""Small episode files whose truth is known, because they are drawn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

TRAIN_LEVELS = range(0, 60)
TEST_LEVELS = range(1000, 1060)


def game_rows(
    *,
    game: str = "coinrun",
    train: float = 6.0,
    test: float = 6.0,
    floor_train: float = 2.0,
    floor_test: float = 2.0,
    n_runs: int = 6,
    run_sd: float = 0.3,
    level_sd: float = 0.5,
    noise_sd: float = 1.0,
    agents: tuple[str, ...] = ("a",),
    rule: str = "sampled",
    budget: str = "8M",
    repeats: int = 2,
    has_levels: bool = True,
    run_values: tuple[float, ...] | None = None,
    levels: dict[str, range] | None = None,
    floor_levels: dict[str, range] | None = None,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """Runs and a uniform floor on both level sets; the means are those of the generator that draws them.

    Args:
        train, test, floor_train, floor_test: true means.
        n_runs: of each agent.
        run_values: exact deviations of the runs from the means, instead of drawn ones.
        levels, floor_levels: level seeds by level set, where they are not the usual ones.
    """
    rng = np.random.default_rng(seed)
    played = levels or {"train": TRAIN_LEVELS, "test": TEST_LEVELS}
    rows: list[dict[str, Any]] = []
    effects = {
        name: dict(zip(those, rng.normal(0, level_sd, len(those)), strict=True))
        for name, those in played.items()
    }

    def add(mean: float, level_set: str, those: range, **labels: Any) -> None:
        for level in those:
            for _ in range(repeats):
                value = mean + effects[level_set].get(level, 0.0) + rng.normal(0, noise_sd)
                rows.append(
                    {"game": game, "mode": "easy", "draw": 0, "level_set": level_set,
                     "level_seed": level if has_levels else None, "episode_return": value, **labels}
                )  # fmt: skip

    for agent in agents:
        for number in range(n_runs):
            own = rng.normal(0, run_sd) if run_values is None else run_values[number]
            who = {"agent": agent, "seed": number, "budget": budget, "reference": "", "rule": rule}
            for level_set, mean in (("train", train), ("test", test)):
                add(mean + own, level_set, played[level_set], **who)
    floor = {"agent": None, "seed": None, "budget": "", "reference": "uniform", "rule": "uniform"}
    for level_set, mean in (("train", floor_train), ("test", floor_test)):
        add(mean, level_set, (floor_levels or played)[level_set], **floor)
    return rows


def repeated(rows: list[dict[str, Any]], *, seed: int, under: int) -> list[dict[str, Any]]:
    """The rows with another run that repeats every episode of one."""
    return rows + [{**row, "seed": under} for row in rows if row["seed"] == seed]


def table(*parts: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table of episodes."""
    return pa.Table.from_pylist([row for part in parts for row in part])
