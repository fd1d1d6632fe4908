"""Measure what `src/gapfloor/data/rates.json` says about training, floors and evaluation, in seconds of one core.

    python tools/measure_rates.py

Processor time is measured, so that other work on the machine matters little; caches are still shared with it. Prints
the rates and the load as JSON. What is measured is short: three updates of 1,024 steps per encoder, and one draw of 64
episodes.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import gapfloor
from gapfloor.training.spec import Hyperparameters, TrainingSpec
from gapfloor.training.trainer import Tick, train

AGENT = Path(__file__).parents[1] / "agents" / "starpilot-easy-impala-100k-s1"


def train_rate(encoder: str) -> float:
    """Steps of training per core second, without the first update, which warms up."""
    ticks: list[tuple[float, int]] = []

    def observe(tick: Tick) -> None:
        ticks.append((time.process_time(), tick.row.steps))

    hyper = Hyperparameters(rollout_length=64)
    spec = TrainingSpec(
        game="starpilot", encoder=encoder, seed=1, steps=3 * hyper.batch, hyperparameters=hyper
    )
    with tempfile.TemporaryDirectory() as store:
        train(spec, store=Path(store), observe=observe)
    (before, first), (after, last) = ticks[0], ticks[-1]
    return (last - first) / (after - before)


def play_rates() -> tuple[float, float]:
    """Steps of the floor and of a sampled agent per core second, both on starpilot after a first call."""
    settings = {"draws": 0, "episodes": 64, "workers": 1, "progress": False}
    rates = []
    for is_floor, play in (
        (True, lambda store: gapfloor.floor("starpilot", store=store, **settings)),
        (
            False,
            lambda store: gapfloor.evaluate(
                str(AGENT), game="starpilot", rules="sampled", store=store, **settings
            ),
        ),
    ):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            play(first)
            began = time.process_time()
            play(second)
            spent = time.process_time() - began
            cells = [cell for cell in gapfloor.Store(second).cells() if cell.is_reference == is_floor]
            steps = sum(cell.manifest.record["n_steps"] for cell in cells)
        rates.append(steps / spent)
    return rates[0], rates[1]


def main() -> None:
    """Measure everything and print it."""
    floor, inference = play_rates()
    measured = {
        "load": os.getloadavg()[0],
        "floor_steps_per_core_second": round(floor),
        "inference_frames_per_core_second": round(inference),
        "train_steps_per_core_second": {
            name: round(train_rate(name), 1) for name in ("impala", "fpn", "impoola")
        },
    }
    sys.stdout.write(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
