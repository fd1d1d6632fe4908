"""What a census saves: variance of a mean return on these levels, by draws and by census, for about the same episodes.

    python benchmarks/census_variance.py [--replicates 4000] [--seed 0]

Draws: 384 episodes on levels drawn with replacement, the same for all runs, as in the paper. Census: 400 episodes,
every held-out level four times. The levels are given, so the true mean is that over all 100 of them. A share of an
episode's variance belongs to its level; half of that is the same for all runs, half is each run's own. Runs do not
differ otherwise, because their difference is not an error of the design. Printed next to the simulated change is the
one that the variances imply, (1 - share) 384 / 400 against (1 - share) + share (runs + 1) / 2.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

LEVELS, DRAWN, REPEATS = 100, 384, 4
SHARES = (0.3, 0.7)
RUNS = (1, 2, 3, 6)


def errors(
    share: float, runs: int, replicates: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the mean over runs, by draws and by census, in standard deviations of an episode."""
    common = rng.standard_normal((replicates, 1, LEVELS))
    own = rng.standard_normal((replicates, runs, LEVELS))
    value = math.sqrt(share / 2) * (common + own)
    truth = value.mean(axis=(1, 2))
    chance = math.sqrt(1 - share)
    levels = np.broadcast_to(rng.integers(0, LEVELS, (replicates, 1, DRAWN)), (replicates, runs, DRAWN))
    drawn = np.take_along_axis(value, levels, axis=2).mean(axis=(1, 2))
    # The mean of k independent normal chances is one normal number.
    drawn += chance / math.sqrt(DRAWN * runs) * rng.standard_normal(replicates)
    census = truth + chance / math.sqrt(LEVELS * REPEATS * runs) * rng.standard_normal(replicates)
    return drawn - truth, census - truth


def change(share: float, runs: int) -> float:
    """What the variances imply for a census instead of draws."""
    return (1 - share) * DRAWN / (LEVELS * REPEATS) / (1 - share + share * (runs + 1) / 2) - 1


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a census saves.")
    parser.add_argument("--replicates", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print("| runs | level share | change of the variance | implied |\n|--:|--:|--:|--:|")
    for runs in RUNS:
        for share in SHARES:
            drawn, census = errors(share, runs, arguments.replicates, rng)
            found = census.var() / drawn.var() - 1
            print(f"| {runs} | {share:g} | {found:+.0%} | {change(share, runs):+.0%} |")


if __name__ == "__main__":
    main()
