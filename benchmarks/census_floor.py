"""The floors of the paper's eight games by census and by draws, at about equal cost.

    .venv/bin/python benchmarks/census_floor.py [GAME ...] [--workers 2]

Draws: three of 128 episodes per level set (as in the paper). Census: every held-out level 4 times (400 episodes), every
training level twice (400). Printed: both means with their standard errors (per episode for draws, within levels for
the census), their difference in units of the joint standard error, the ratio of the errors, and CPU seconds.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile

from gapfloor.api.floor import floor as measure_floor
from gapfloor.engines.procgen import PAPER_GAMES


def cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("games", nargs="*", default=list(PAPER_GAMES))
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    print("| game | levels | draws | census | z | SE ratio | CPU s draws | CPU s census |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    squares, ratios = [], []
    for game in arguments.games:
        for train, test, repeats in (("none", "1000:1100", 4), ("0:200", "none", 2)):
            rows, seconds = [], []
            for design in ("draws", "census"):
                start = cpu_seconds()
                with tempfile.TemporaryDirectory() as folder:
                    floor = measure_floor(
                        game, train=train, test=test, design=design, repeats=repeats, workers=arguments.workers,
                        store=folder,
                    )  # fmt: skip
                rows.append(floor.floors[0])
                seconds.append(cpu_seconds() - start)
            drawn, census = rows
            z = (census.mean - drawn.mean) / math.hypot(drawn.sem, census.sem)
            squares.append(z * z)
            ratios.append(census.sem / drawn.sem)
            print(
                f"| {game} | {drawn.levels} | {drawn.mean:.2f} ± {drawn.sem:.2f} "
                f"| {census.mean:.2f} ± {census.sem:.2f} | {z:+.1f} | {ratios[-1]:.2f} "
                f"| {seconds[0]:.1f} | {seconds[1]:.1f} |",
                flush=True,
            )
    print(
        f"mean z² {statistics.mean(squares):.2f} over {len(squares)} floors; SE ratio {statistics.mean(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
