"""Time of CKA's permutation null, against the bare matrix products it needs and against the plain way.

    python benchmarks/cka_speed.py --rows 1024 --features 256 --permutations 200

`ours` is `permutation_null`: centring, norms, observed value and shuffles. `bare` is one float32 product a shuffle and
nothing else: the least that a method which forms X'PY can take. `gather` keeps both n x n Gram matrices and reorders
one of them for each shuffle; `plain` recomputes it, as one would write it first (fewer shuffles are timed, the time
scaled up). The ways are interleaved; the least CPU and wall time of each is taken, since what other processes take
away only ever adds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gapfloor.representation import permutation_null

PLAIN_SHUFFLES = 5


def bare(x: np.ndarray, y: np.ndarray, permutations: int) -> None:
    """The products alone."""
    left, right = x.T.astype(np.float32), y.astype(np.float32)
    for _ in range(permutations):
        left @ right


def plain(x: np.ndarray, y: np.ndarray, permutations: int) -> float:
    """Compute one side's Gram matrix again for each shuffle."""
    rng = np.random.default_rng(0)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    gram = x @ x.T
    values = []
    for _ in range(permutations):
        shuffled = y[rng.permutation(len(y))]
        other = shuffled @ shuffled.T
        values.append((gram * other).sum() / np.sqrt((gram * gram).sum() * (other * other).sum()))
    return float(np.mean(values))


def gather(x: np.ndarray, y: np.ndarray, permutations: int) -> float:
    """Both Gram matrices once, rows and columns of one of them reordered for each shuffle."""
    rng = np.random.default_rng(0)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    gram, other = (x @ x.T).astype(np.float32), (y @ y.T).astype(np.float32)
    norm = np.linalg.norm(gram) * np.linalg.norm(other)
    orders = [rng.permutation(len(y)) for _ in range(permutations)]
    return float(np.mean([np.vdot(gram, other[order][:, order]) / norm for order in orders]))


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--permutations", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, arguments.rows, arguments.features))
    n = arguments.permutations
    ways: dict[str, tuple[Callable[[], Any], float]] = {
        "ours": (lambda: permutation_null(x, y, rng=np.random.default_rng(0), permutations=n), 1.0),
        "bare": (lambda: bare(x, y, n), 1.0),
        "gather": (lambda: gather(x, y, n), 1.0),
        "plain": (lambda: plain(x, y, PLAIN_SHUFFLES), n / PLAIN_SHUFFLES),
    }
    runs = [{name: timed(work) for name, (work, _) in ways.items()} for _ in range(arguments.repeat)]
    print(
        f"n = {arguments.rows}, d = {arguments.features}, {n} permutations; {len(os.sched_getaffinity(0))} cores, "
        f"OMP_NUM_THREADS {os.environ.get('OMP_NUM_THREADS', 'not set')}, load {os.getloadavg()[0]:.1f}; seconds"
    )
    for name, (_, scale) in ways.items():
        cpu, wall = (min(run[name][part] for run in runs) * scale for part in (0, 1))
        print(f"{name:<6} CPU {cpu:6.2f}  wall {wall:6.2f}")


if __name__ == "__main__":
    main()
