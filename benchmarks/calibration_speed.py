"""Calibration time of a game against the bare cost of its engine calls, and against a plain loop.

    python benchmarks/calibration_speed.py starpilot coinrun --repeat 3

Four ways of handling the same states: `bare` makes the loads and steps of the calibration and compares nothing;
`ours` is `state_partitions` with one worker, `workers` with one per core; `plain` is the straightforward loop (fifteen
slots, dictionaries of arrays, a hash of each frame). They are interleaved and each repeated; the least CPU
time of each is reported, because other processes can only add time. `--calls` measures single calls of the engine
instead, and how many of the sixteen copies of a state still share their outcome with another after each step: the
others could stop.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gapfloor.actions import Partition
from gapfloor.calibration import CalibrationSettings, state_partitions, visited_states
from gapfloor.calibration.cloning import HORIZON, Cloner, split
from gapfloor.engines.procgen import PAPER_GAMES, ProcgenEngine, make_spec
from gapfloor.levels import LevelSet


def bare(game: str, states: list[bytes]) -> None:
    """The engine calls of the calibration alone."""
    engine = ProcgenEngine(game, slots=ProcgenEngine.n_actions + 1, levels=LevelSet(0, 1))
    noops = np.full(engine.n_slots, engine.noop)
    order = [np.append(np.roll(np.arange(engine.n_actions), turn), turn % 15) for turn in range(15)]
    for turn, state in enumerate(states):
        for slot in range(engine.n_slots):
            engine.load(slot, state)
        engine.step(order[turn % 15])
        for _ in range(HORIZON - 1):
            engine.step(noops)
    engine.close()


def plain(game: str, states: list[bytes]) -> list[Partition]:
    """What one would write first, against the wheel's own interface; it replays nothing."""
    from procgen import ProcgenGym3Env

    env = ProcgenGym3Env(
        num=15, env_name=game, num_levels=200, start_level=0, distribution_mode="easy", num_threads=0
    )
    found = []
    for state in states:
        env.callmethod("set_state", [state] * 15)
        outcomes: list[list[Any]] = [[] for _ in range(15)]
        for step in range(HORIZON):
            env.act(np.arange(15) if step == 0 else np.full(15, 4))
            rewards, observations, firsts = env.observe()
            for action in range(15):
                frame = hash(observations["rgb"][action].tobytes())
                outcomes[action].append((frame, float(rewards[action]), bool(firsts[action])))
        numbers: dict[Any, int] = {}
        found.append(Partition.from_labels([numbers.setdefault(tuple(o), len(numbers)) for o in outcomes]))
    env.close()
    return found


def calls(game: str, n_states: int) -> str:
    """What one call costs, and how many copies are still undecided after each step, on average."""
    spec = make_spec(game)
    states = visited_states(spec, levels=CalibrationSettings().levels, n_states=n_states, seed=0)
    engine = ProcgenEngine(game, slots=ProcgenEngine.n_actions + 1, levels=LevelSet(0, 1))
    spent = dict.fromkeys(("load", "step", "save"), 0.0)
    undecided = np.zeros(HORIZON)
    for turn, state in enumerate(states):
        actions = np.append(np.roll(np.arange(engine.n_actions), turn), turn % engine.n_actions)
        spent["load"] += timed(lambda state=state: [engine.load(s, state) for s in range(engine.n_slots)])[0]
        labels = [0] * engine.n_slots
        for step in range(HORIZON):
            chosen = actions if step == 0 else np.full(engine.n_slots, engine.noop)
            cpu, _, outcome = timed(lambda chosen=chosen: engine.step(chosen))
            spent["step"] += cpu / HORIZON
            labels = split(labels, *outcome)
            undecided[step] += sum(labels.count(label) > 1 for label in labels)
        spent["save"] += timed(lambda: [engine.save(slot) for slot in range(engine.n_slots)])[0]
    engine.close()
    shown = ", ".join(f"{name} {1e6 * cpu / n_states / engine.n_slots:.0f} us" for name, cpu in spent.items())
    return (
        f"{game:<10} {shown}; undecided copies after each step: {np.round(undecided / n_states, 1).tolist()}"
    )


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall seconds and the result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("games", nargs="*", default=list(PAPER_GAMES))
    parser.add_argument("--states", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--calls", action="store_true")
    arguments = parser.parse_args()
    if arguments.calls:
        for game in arguments.games or PAPER_GAMES:
            print(calls(game, arguments.states), flush=True)
        return
    cores = len(os.sched_getaffinity(0))
    print(f"{arguments.states} states, {cores} cores, load {os.getloadavg()[0]:.1f} before; seconds")
    print("game        play  bare  ours plain | bare/ours plain/ours (CPU) | wall: ours, workers, plain")
    for game in arguments.games or PAPER_GAMES:
        spec = make_spec(game)
        play, _, states = timed(
            lambda spec=spec: visited_states(
                spec, levels=CalibrationSettings().levels, n_states=arguments.states, seed=0
            )
        )
        Cloner(spec).close()  # images are loaded once per process
        ways: dict[str, Callable[[], Any]] = {
            "bare": lambda game=game, states=states: bare(game, states),
            "ours": lambda spec=spec, states=states: state_partitions(spec, states),
            "workers": lambda spec=spec, states=states: state_partitions(spec, states, workers=cores),
            "plain": lambda game=game, states=states: plain(game, states),
        }
        runs = [{name: timed(way) for name, way in ways.items()} for _ in range(arguments.repeat)]
        assert runs[0]["ours"][2] == runs[0]["workers"][2] == runs[0]["plain"][2], "the classes differ"
        cpu = {name: min(run[name][0] for run in runs) for name in ways}
        wall = {name: min(run[name][1] for run in runs) for name in ways}
        print(
            f"{game:<10} {play:5.2f} {cpu['bare']:5.2f} {cpu['ours']:5.2f} {cpu['plain']:5.2f} | "
            f"{cpu['bare'] / cpu['ours']:9.2f} {cpu['plain'] / cpu['ours']:10.2f}       | "
            f"{wall['ours']:.2f}, {wall['workers']:.2f}, {wall['plain']:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
