"""The number of threads of numpy's matrix products changes no byte of a result."""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from gapfloor.engines.procgen import PAPER_GAMES
from gapfloor.machine import one_blas_thread


def test_an_analysis_has_the_same_bytes_with_any_number_of_blas_threads(tmp_path: Path) -> None:
    """Two and more threads add up long products in another order, which changes their last bits."""
    episodes = tmp_path / "episodes.csv"
    _write_episodes(episodes)
    found = [_analysed(episodes, tmp_path / str(threads), threads) for threads in (1, 2, 4)]
    assert found[0] == found[1] == found[2]


def test_the_threads_of_the_caller_come_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert _threads() == {1}
        assert _threads() == {2}


def _threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def _analysed(episodes: Path, out: Path, threads: int) -> bytes:
    command = [sys.executable, "-m", "gapfloor.cli.main", "analyse", str(episodes), "--out", str(out)]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return (out / "results.json").read_bytes()


def _write_episodes(path: Path) -> None:
    rng = np.random.default_rng(0)
    runs = [*(("mine", seed, "sampled") for seed in range(12)), ("", "", "uniform")]
    columns = "game,budget,agent,seed,rule,level_set,draw,level_seed,episode_return"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns.split(","))
        for game, run in itertools.product(PAPER_GAMES, runs):
            for level_set, levels in (("train", range(200)), ("test", range(1000, 1100))):
                for level in levels:
                    writer.writerow([game, "8M", *run, level_set, 0, level, rng.normal(3 + level % 7, 1)])
