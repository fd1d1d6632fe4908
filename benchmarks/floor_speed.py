"""Engine steps per second: the floor harness against the bare engine loop and against EnvPool's ProcGen.

    .venv/bin/python benchmarks/floor_speed.py [--games paper] [--envpool-python PATH] [--costs]

All sides run in turn, several rounds, one process each, and the ratio of each round is printed: on a shared machine
only ratios within a round mean something, and CPU time (the default clock) more than wall time. "Steps" of the
harness are the counted ones; its initial states, its tails and its bookkeeping are all inside its time. EnvPool wants
packages that the engine's wheel excludes, so it runs in an environment of its own
(python -m venv E && E/bin/pip install "numpy<2" envpool; on Debian also apt install libqt5gui5). `--costs` measures
only what the engine's own calls cost: the first engine of a process (with all pictures, the game's own and blank
ones), loading a state, and a step.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time

import numpy as np

from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.engines.unseen import unseen_engine
from gapfloor.levels import LevelSet
from gapfloor.play.actor import ReferenceActor
from gapfloor.play.cell import CellSpec, Run
from gapfloor.play.group import REFERENCE_SLOTS
from gapfloor.play.player import CellPlay, Player
from gapfloor.play.protocol import expand_games
from gapfloor.policies.references import Uniform

LEVELS = LevelSet(0, 200)
CLOCK = time.process_time

FIRST_ENGINE = """
import resource, sys, time
from gapfloor.engines.picture_files import only_look_at
from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.levels import LevelSet
game, pictures = sys.argv[1:]
if pictures != "all":
    only_look_at([game] if pictures == "own" else [])
start = time.process_time()
ProcgenEngine(game, slots=16, levels=LevelSet(0, 200))
seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{game}: first engine of a process, {pictures} pictures: {seconds:.2f} s, {peak:.0f} MB")
"""

ENVPOOL = """
import sys, time, json, numpy as np, envpool
game, steps, slots = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
name = game.capitalize() + "Easy-v0"
env = envpool.make(name, env_type="gymnasium", num_envs=slots, num_threads=int(sys.argv[5]), num_levels=200, seed=0)
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
        make_engine=lambda n: unseen_engine(spec, slots=n, levels=LEVELS),
        actor=ReferenceActor(Uniform(), space=ProcgenEngine.action_space),
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


def envpool(
    python: str, game: str, steps: int, slots: int = 16, threads: int = 1, clock: str | None = None
) -> float:
    done = subprocess.run(
        [python, "-c", ENVPOOL, game, str(steps), str(slots), clock or CLOCK.__name__, str(threads)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1]))


def print_costs(game: str) -> None:
    """CPU time of the engine's calls."""
    for pictures in ("all", "own", "blank"):
        command = [sys.executable, "-c", FIRST_ENGINE, game, pictures]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    engine = ProcgenEngine(game, slots=16, levels=LEVELS)
    state = engine.initial_state(0)
    start = time.process_time()
    for number in range(2000):
        engine.load(number % 16, state)
    load = (time.process_time() - start) / 2000
    step = 1 / bare(game, 16_000)
    print(f"{game}: loading a state {load * 1e3:.3f} ms, a step {step * 1e3:.3f} ms")


def compare(game: str, draws: range, python: str | None) -> dict[str, float]:
    """Seconds that each side needs for the steps that the harness counts in one round."""
    ours, counted = harness(game, draws)
    seconds = {"harness": counted / ours, "bare": counted / bare(game, counted)}
    if python:
        seconds["envpool"] = counted / envpool(python, game, counted)
    ratios = ", ".join(
        f"{name} / harness {seconds[name] / seconds['harness']:.2f}" for name in list(seconds)[1:]
    )
    print(f"  {game}: {counted:,} counted steps, {ours:,.0f} a second; {ratios}", flush=True)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", default="paper", help="with commas; paper means the paper's eight")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--envpool-python", default=None)
    parser.add_argument("--wall", action="store_true", help="wall time instead of CPU time")
    parser.add_argument(
        "--costs", action="store_true", help="only the cost of the engine's calls, first game"
    )
    arguments = parser.parse_args()
    if arguments.costs:
        print_costs(expand_games(arguments.games.split(","))[0])
        return
    if arguments.wall:
        global CLOCK
        CLOCK = time.perf_counter
    games = expand_games(arguments.games.split(","))
    bare(games[0], 1600)  # loads the assets
    ratios: dict[str, list[float]] = {}
    for number in range(arguments.rounds):
        print(f"round {number}")
        rows = [compare(game, range(3 * number, 3 * number + 3), arguments.envpool_python) for game in games]
        total = {name: sum(row[name] for row in rows) for name in rows[0]}
        for name in list(total)[1:]:
            ratios.setdefault(name, []).append(total[name] / total["harness"])
    for name, values in ratios.items():
        middle = statistics.median(values)
        print(
            f"speed of the harness over {name}, all games together: median {middle:.2f}, all {np.round(values, 2)}"
        )


if __name__ == "__main__":
    main()
