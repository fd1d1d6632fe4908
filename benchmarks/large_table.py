"""A CSV of about 1 GB through `gapfloor analyse` and `gapfloor report`: seconds, CPU seconds and peak memory.

    python benchmarks/large_table.py [--gigabytes 1.0] [--report] [--folder /tmp]

The file has the columns that a harness writes (game, agent, seed, rule, level set, draw, level seed, return, length):
eight games, two agents, five seeds, two rules, the floor, both level sets and three draws. It is deleted afterwards.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

GAMES = ("bigfish", "bossfight", "coinrun", "fruitbot", "heist", "maze", "miner", "starpilot")
RULES = ("sampled", "greedy")
BYTES_PER_ROW = 52.7  # of the first 10 MB


def write_table(path: Path, size: float) -> tuple[int, int]:
    """Write about `size` bytes, cell by cell; gives the numbers of episodes and of cells."""
    cells = [
        (game, agent, seed, rule, level_set, draw)
        for game in GAMES
        for agent, rules in (("ppo", RULES), ("impala", RULES), ("random", ("uniform",)))
        for seed in range(5 if agent != "random" else 1)
        for rule in rules
        for level_set in ("train", "test")
        for draw in range(3)
    ]
    n = round(size / BYTES_PER_ROW / len(cells))
    rng = np.random.default_rng(0)
    writer = None
    for game, agent, seed, rule, level_set, draw in cells:
        start, n_levels = (0, 200) if level_set == "train" else (1000, 100)
        labels = {
            "game": game,
            "agent": agent,
            "seed": seed,
            "rule": rule,
            "level_set": level_set,
            "draw": draw,
        }
        table = pa.table(
            {
                **{name: pa.array([value] * n) for name, value in labels.items()},
                "level_seed": start + rng.integers(0, n_levels, n),
                "episode_return": np.round(rng.gamma(2.0, 2.0 + 0.2 * seed, n), 4),
                "length": rng.integers(10, 1000, n),
            }
        )
        if writer is None:
            writer = pa_csv.CSVWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return n * len(cells), len(cells)


def measure(command: list[str]) -> tuple[float, float, float]:
    """Seconds, CPU seconds and peak gigabytes of one command."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "gapfloor.cli.main", *command], stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"gapfloor {command[0]} ended with exit code {process.returncode}")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description="Analyse a large CSV file.")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--report", action="store_true", help="Write the report too.")
    parser.add_argument("--folder", default=None, help="Where the file is made (default: the system's).")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "big.csv"
        n_episodes, n_cells = write_table(path, arguments.gigabytes * 1e9)
        print(f"{path.stat().st_size / 1e9:.2f} GB, {n_episodes:,} episodes in {n_cells:,} cells", flush=True)
        for name in ["analyse", *(["report"] if arguments.report else [])]:
            wall, processor, peak = measure([name, str(path), "--out", f"{folder}/{name}"])
            load = os.getloadavg()[0]
            print(
                f"{name}: {wall:.1f} s, {processor:.1f} s of CPU, {peak:.2f} GB; load {load:.1f}", flush=True
            )


if __name__ == "__main__":
    main()
