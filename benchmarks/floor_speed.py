"""Engine steps per second: the floor harness against the bare engine loop and against EnvPool's ProcGen.

    .venv/bin/python benchmarks/floor_speed.py [--game coinrun] [--envpool-python PATH]

All sides run in turn, several rounds, one process each, and the ratio of each round is printed: on a shared machine
only ratios within a round mean something, and CPU time (the default clock) more than wall time. "Steps" of the
harness are the counted ones; its initial states, its tails and its bookkeeping are all inside its time. EnvPool wants
packages that the engine's wheel excludes, so it runs in an environment of its own
(python -m venv E && E/bin/pip install "numpy<2" envpool; on Debian also apt install libqt5gui5).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time

import numpy as np

from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.evaluation.actor import ReferenceActor
from gapfloor.evaluation.cell import CellSpec, Run
from gapfloor.evaluation.group import REFERENCE_SLOTS
from gapfloor.evaluation.player import CellPlay, Player
from gapfloor.levels import LevelSet
from gapfloor.policies.references import Uniform

LEVELS = LevelSet(0, 200)
CLOCK = time.process_time

ENVPOOL = """
import sys, time, json, numpy as np, envpool
game, steps, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
name = game.capitalize() + "Easy-v0"
env = envpool.make(name, env_type="gymnasium", num_envs=slots, num_threads=1, num_levels=200, seed=0)
clock = getattr(time, sys.argv[4])
env.reset()
actions = np.random.default_rng(0).integers(0, 15, (steps // slots, slots)).astype(np.int32)
for row in actions[:50]:
    env.step(row)
start = clock()
for row in actions:
    env.step(row)
print(json.dumps(actions.size / (clock() - start)))
"""


def harness(game: str, draws: range) -> tuple[float, int]:
    """Counted steps per second of the player, and how many steps it counted."""
    spec = make_spec(game)
    cells = [
        CellSpec(spec, Run(reference="uniform"), "uniform", "uniform", "train", LEVELS, draw)
        for draw in draws
    ]
    player = Player(
        make_engine=lambda n: ProcgenEngine(game, slots=n, levels=LEVELS),
        actor=ReferenceActor(Uniform(), n_actions=ProcgenEngine.n_actions),
        n_slots=REFERENCE_SLOTS,
    )
    start = CLOCK()
    plays = list(player.play(CellPlay(cell, None, False) for cell in cells))
    seconds = CLOCK() - start
    counted = sum(outcome.length for play in plays for outcome in play.finished())
    return counted / seconds, counted


def bare(game: str, steps: int, slots: int = 16) -> float:
    """Steps per second of the engine alone, with actions made beforehand."""
    engine = ProcgenEngine(game, slots=slots, levels=LEVELS)
    actions = np.random.default_rng(0).integers(0, engine.n_actions, (steps // slots, slots))
    start = CLOCK()
    for row in actions:
        engine.step(row)
    return actions.size / (CLOCK() - start)


def envpool(python: str, game: str, steps: int, slots: int = 16) -> float:
    done = subprocess.run(
        [python, "-c", ENVPOOL, game, str(steps), str(slots), CLOCK.__name__],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--game", default="coinrun")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--envpool-python", default=None)
    parser.add_argument("--wall", action="store_true", help="wall time instead of CPU time")
    arguments = parser.parse_args()
    if arguments.wall:
        global CLOCK
        CLOCK = time.perf_counter
    bare(arguments.game, 1600)  # loads the assets
    ratios: dict[str, list[float]] = {"bare": [], "envpool": []}
    for number in range(arguments.rounds):
        ours, counted = harness(arguments.game, range(3 * number, 3 * number + 3))
        engine = bare(arguments.game, counted)
        ratios["bare"].append(ours / engine)
        line = f"round {number}: harness {ours:,.0f} counted steps/s, bare {engine:,.0f}, ratio {ours / engine:.2f}"
        if arguments.envpool_python:
            theirs = envpool(arguments.envpool_python, arguments.game, counted)
            ratios["envpool"].append(ours / theirs)
            line += f"; EnvPool {theirs:,.0f}, ratio {ours / theirs:.2f}"
        print(line, flush=True)
    for name, values in ratios.items():
        if values:
            middle = statistics.median(values)
            print(f"{arguments.game}: harness / {name}: median {middle:.2f}, all {np.round(values, 2)}")


if __name__ == "__main__":
    main()
