"""Percentile intervals of the paper's 44 floor comparisons: ours against scipy.stats.bootstrap and rliable.

    OMP_NUM_THREADS=1 python benchmarks/bootstrap_speed.py [--repeats 5] [--rliable PYTHON]

All sides get the same run values and floor episodes (paper-shaped, whole-number floors) and 10^4 resamples of
the difference of means. Processor time is measured on one thread, the sides are interleaved, and the fastest of
the repeats is kept. rliable is run by another interpreter (--rliable venv/bin/python, with pandas<3);
without one it is left out and that is said. rliable resamples the runs of one array and has no second sample:
it gets each comparison's run values and its floor as two arrays, resampled separately, as its API allows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

N_RESAMPLES = 10_000
#: Run values and floor episodes of each comparison.
Samples = list[tuple[np.ndarray, np.ndarray]]

RLIABLE = """
import json, sys, time
import numpy as np
from rliable import library
data = json.load(open(sys.argv[1]))
best = float("inf")
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    for runs, floor in data:
        for values in (runs, floor):
            library.get_interval_estimates(
                {"a": np.array(values)[:, None]}, lambda x: np.array([np.mean(x)]), reps=10000)
    best = min(best, time.process_time() - start)
print(best)
"""


def comparisons() -> Samples:
    """Run values and floor episodes of the 44 comparisons."""
    import paper_shaped

    values = paper_shaped.run_values()
    return [
        (runs, paper_shaped.floor_returns(game, levels))
        for (game, _, rule, levels), runs in values.items()
        if rule != "merged"
    ]


def ours(data: Samples) -> list[tuple[float, float]]:
    from gapfloor.statistics.bootstrap import percentile_interval, resampled_differences

    rng = np.random.default_rng(0)
    found = []
    for runs, floor in data:
        means = resampled_differences(np.sort(runs), np.sort(floor), n_resamples=N_RESAMPLES, rng=rng)
        found.append(percentile_interval(means))
    return found


def scipys(data: Samples) -> list[tuple[float, float]]:
    from scipy import stats

    rng = np.random.default_rng(0)
    found = []
    for pair in data:
        interval = stats.bootstrap(
            pair,
            lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
            n_resamples=N_RESAMPLES,
            vectorized=True,
            method="percentile",
            random_state=rng,
        ).confidence_interval
        found.append((float(interval.low), float(interval.high)))
    return found


def kinds() -> dict[str, np.ndarray]:
    """Floors of other kinds and sizes than the paper's."""
    rng = np.random.default_rng(1)
    return {
        "384 whole numbers": rng.binomial(40, 0.1, 384).astype(float),
        "3,840 whole numbers": rng.binomial(40, 0.1, 3840).astype(float),
        "8,000 whole numbers": rng.binomial(40, 0.1, 8000).astype(float),
        "38,400 whole numbers": rng.binomial(40, 0.1, 38_400).astype(float),
        "384 real values": rng.gamma(2.0, 2.0, 384),
        "3,840 real values": rng.gamma(2.0, 2.0, 3840),
        "38,400 real values": rng.gamma(2.0, 2.0, 38_400),
    }


def print_kinds(repeats: int, rliable: Path | None) -> None:
    """One comparison per kind of floor. Nothing is kept from one repeat to the next."""
    from gapfloor.statistics import convolution

    runs = np.random.default_rng(2).normal(5.0, 1.0, 6)
    print("\n| floor | ours, ms | scipy, ms | rliable, ms |\n|---|---:|---:|---:|")
    for name, floor in kinds().items():
        data = [(runs, floor)]
        best = {"ours": float("inf"), "scipy": float("inf")}
        for _ in range(repeats):
            convolution._cached.cache_clear()
            best["ours"] = min(best["ours"], timed(ours, data))
            # scipy makes one array of resamples: 38,400 values would take 3 GB.
            if floor.size < 10_000:
                best["scipy"] = min(best["scipy"], timed(scipys, data))
        if rliable is not None and floor.size < 10_000:
            best["rliable"] = time_rliable(rliable, data, 1)
        cells = [_cell(best.get(side), best["ours"]) for side in ("scipy", "rliable")]
        print(f"| {name} | {best['ours'] * 1e3:.1f} | {' | '.join(cells)} |")


def _cell(seconds: float | None, mine: float) -> str:
    if seconds is None or seconds == float("inf"):
        return "not measured"
    return f"{seconds * 1e3:.0f} ({seconds / mine:.0f}x)"


def timed(side: Callable[[Samples], object], data: Samples) -> float:
    """Seconds of processor time: what other processes take does not count."""
    start = time.process_time()
    side(data)
    return time.process_time() - start


def time_rliable(python: Path, data: Samples, repeats: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        script, values = Path(folder) / "rliable_side.py", Path(folder) / "data.json"
        script.write_text(RLIABLE)
        values.write_text(json.dumps([[runs.tolist(), floor.tolist()] for runs, floor in data]))
        done = subprocess.run(
            [str(python), str(script), str(values), str(repeats)], capture_output=True, text=True, check=True
        )
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Bootstrap intervals against scipy and rliable.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--rliable", type=Path, help="interpreter of an environment with rliable and pandas<3"
    )
    arguments = parser.parse_args()
    data = comparisons()
    assert len(data) == 44
    first, second = np.array(ours(data)), np.array(scipys(data))
    widths = second[:, 1] - second[:, 0]
    worst = float((np.abs(first - second).max(axis=1) / widths).max())
    best = {"ours": float("inf"), "scipy": float("inf")}
    for _ in range(arguments.repeats):
        best["ours"] = min(best["ours"], timed(ours, data))
        best["scipy"] = min(best["scipy"], timed(scipys, data))
    if arguments.rliable is not None:
        # It takes minutes for all: every eleventh comparison is timed, and the sum scaled.
        best["rliable"] = 11 * time_rliable(arguments.rliable, data[::11], 1)
    print(
        f"44 comparisons, {N_RESAMPLES} resamples, fastest of {arguments.repeats}; load {os.getloadavg()[0]:.1f}"
    )
    for name, seconds in best.items():
        print(f"  {name:8s} {seconds:8.3f} s   {seconds / best['ours']:6.1f}x ours")
    if "rliable" in best:
        print("  (rliable: 4 of the 44 comparisons, times 11)")
    else:
        print("  rliable  not measured: give --rliable PYTHON")
    print_kinds(arguments.repeats, arguments.rliable)
    print(f"  ends differ from scipy's by at most {worst:.1%} of an interval's width (resampling error)")


if __name__ == "__main__":
    main()
