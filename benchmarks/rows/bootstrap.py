"""One percentile interval of a difference of means with 10,000 resamples, against scipy and rliable.

rliable is run by another interpreter (`--rliable venv/bin/python`, with pandas<3). It has no second sample, so it gets
run values and floor as two arrays and resamples them separately, as its interface allows.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from contest import HERE, Contest, Timed, timed
from gapfloor.statistics import bootstrap
from gapfloor.statistics.bootstrap import percentile_interval, resampled_differences

N_RESAMPLES = 10_000
REPEATS = 20


def rows(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    return {
        f"bootstrap-{peer}-{size}-{kind}": functools.partial(_contest, size, kind, peer, options)
        for peer in ("scipy", "rliable")
        for size in (384, 3840)
        for kind in ("whole", "real")
    }


def _contest(size: int, kind: str, peer: str, options: argparse.Namespace) -> Contest:
    if peer == "rliable" and options.rliable is None:
        raise RuntimeError("no interpreter with rliable was named (--rliable)")
    rng = np.random.default_rng(1)
    floor = rng.binomial(40, 0.1, size).astype(float) if kind == "whole" else rng.gamma(2.0, 2.0, size)
    runs = rng.normal(5.0, 1.0, 6)

    def ours() -> float:
        for _ in range(REPEATS):
            bootstrap._windowed.cache_clear()  # nothing is kept from one interval to the next
            drawn = resampled_differences(np.sort(runs), np.sort(floor), n_resamples=N_RESAMPLES, rng=rng)
            percentile_interval(drawn)
        return float(REPEATS)

    ours(), _scipy(runs, floor, rng)  # imports do not count
    return Contest(
        peer,
        lambda: timed(ours),
        lambda _: (
            _rliable(options.rliable, runs, floor)
            if peer == "rliable"
            else timed(lambda: _scipy(runs, floor, rng))
        ),
        "intervals/s",
    )


def _scipy(runs: np.ndarray, floor: np.ndarray, rng: np.random.Generator) -> float:
    from scipy import stats

    stats.bootstrap(
        (runs, floor), lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), n_resamples=N_RESAMPLES,
        vectorized=True, method="percentile", rng=rng,
    )  # fmt: skip
    return 1.0


def _rliable(python: Path, runs: np.ndarray, floor: np.ndarray) -> Timed:
    with tempfile.TemporaryDirectory() as folder:
        values = Path(folder) / "values.json"
        values.write_text(json.dumps([runs.tolist(), floor.tolist()]))
        command = [str(python), str(HERE / "peers" / "rliable_intervals.py"), str(values)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = float(done.stdout.splitlines()[-1])
    return Timed(1.0, seconds, seconds)
