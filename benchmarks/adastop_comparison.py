"""Adding runs until a call: gapfloor's looks, AdaStop and a fixed number of runs, on the same simulated games.

    python benchmarks/adastop_comparison.py [--replicates 400] [--seed 0]      # needs: pip install adastop

One game at a time, an agent against random play, at most 15 runs in five looks of three. AdaStop (Mathieu et al.,
2023, version printed below) permutes evaluations within looks, so random play enters as an agent with three
evaluations per look, each the mean of 128 episodes. At alpha .05 / 8 the game is one of eight with Bonferroni's
correction, because AdaStop does not correct over games.
"""

from __future__ import annotations

import argparse
import math
import time
from importlib.metadata import version

import numpy as np

from claims_simulation import rejects_at
from claims_worlds import Calls
from gapfloor.statistics.sequential import nominal_levels

LOOKS = (3, 6, 9, 12, 15)
#: Standard deviation of a floor episode, in standard deviations between runs.
FLOOR_SD = 2.0
FLOOR_EPISODES = 384


def draw(shape: str, effect: float, size: int, rng: np.random.Generator) -> np.ndarray:
    """Values of runs with mean `effect` and standard deviation one."""
    if shape == "log-normal":
        values = (rng.lognormal(0, 1, (size, 15)) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)
    else:
        values = rng.standard_normal((size, 15))
    return values + effect


def looks(runs: np.ndarray, alpha: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whether gapfloor calls a game within the looks, and the runs used."""
    levels = nominal_levels(LOOKS, alpha=alpha)
    floor = rng.standard_normal(len(runs)) * FLOOR_SD / math.sqrt(FLOOR_EPISODES)
    used, called = np.full(len(runs), LOOKS[-1]), np.zeros(len(runs), dtype=bool)
    for n, level in zip(LOOKS, levels, strict=True):
        now = _rejects(runs[:, :n], floor, level)
        used[now & ~called] = n
        called |= now
    return called, used


def fixed(runs: np.ndarray, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Whether 15 runs at once make a call."""
    return _rejects(runs, rng.standard_normal(len(runs)) * FLOOR_SD / math.sqrt(FLOOR_EPISODES), alpha)


def _rejects(runs: np.ndarray, floor: np.ndarray, level: float) -> np.ndarray:
    """The recommended call of each game for itself."""
    known = np.full((len(runs), 1), FLOOR_SD**2 / FLOOR_EPISODES)
    games = Calls(runs[:, None, :], floor[:, None], known, np.ones(1))
    return rejects_at(games, alone=True)(np.full((1, 1), level))[:, 0]


def adastop(runs: np.ndarray, alpha: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Whether AdaStop finds the agent larger or smaller, and the runs used."""
    from adastop import MultipleAgentsComparator

    called, used = np.zeros(len(runs), dtype=bool), np.full(len(runs), LOOKS[-1])
    for i, values in enumerate(runs):
        floor = rng.standard_normal(15) * FLOOR_SD / math.sqrt(128)
        comparator = MultipleAgentsComparator(n=3, K=5, B=2000, alpha=alpha, seed=i)
        for n in LOOKS:
            comparator.partial_compare({"agent": values[:n], "random": floor[:n]}, verbose=False)
            if comparator.is_finished:
                break
        (decision,) = comparator.decisions.values()
        called[i], used[i] = decision in ("larger", "smaller"), n
    return called, used


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(
        description="gapfloor's looks next to AdaStop and a fixed number of runs."
    )
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print(
        f"AdaStop {version('adastop')}, {arguments.replicates} games per row (gapfloor and 15 runs: 20,000)\n"
    )
    print(
        "| run values | alpha | effect | calls: looks | AdaStop | 15 runs | runs: looks | AdaStop | CPU s: AdaStop |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for alpha in (0.05, 0.05 / 8):
        for shape, effect in (("normal", 0.0), ("normal", 1.0), ("normal", 2.0), ("log-normal", 0.0)):
            many = draw(shape, effect, 20_000, rng)
            ours, ours_used = looks(many, alpha, rng)
            started = time.process_time()
            theirs, theirs_used = adastop(many[: arguments.replicates], alpha, rng)
            seconds = (time.process_time() - started) / arguments.replicates
            rates = f"{ours.mean():.3f} | {theirs.mean():.3f} | {fixed(many, alpha, rng).mean():.3f}"
            used = f"{ours_used.mean():.1f} | {theirs_used.mean():.1f} | {seconds:.2f}"
            print(f"| {shape} | {alpha:.4g} | {effect:g} SD | {rates} | {used} |", flush=True)


if __name__ == "__main__":
    main()
