"""Greedy evaluation on draws of the 100 held-out levels: repeated levels copied, against every episode simulated.

    .venv/bin/python benchmarks/greedy_reuse.py [CHECKPOINT] [--game starpilot] [--draws 3] [--batch 32] [--rounds 2]

The same cells, one process and one thread on each side, CPU time; the files that both leave in a store are compared
byte for byte, and a third time against the plain balanced loop if --plain is given (slow: burn-in is played too).
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.levels import LevelSet
from gapfloor.machine import one_torch_thread
from gapfloor.play.actor import PolicyActor
from gapfloor.play.cell import CellSpec, Inference, Run
from gapfloor.play.group import file_cell
from gapfloor.play.plain_loop import play_plainly
from gapfloor.play.player import CellPlay, Player
from gapfloor.play.protocol import INFERENCE_BATCH
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store
from gapfloor.rules import Greedy

LEVELS = LevelSet(1000, 1100)


def queue(game: str, policy: Any, cells: list[CellSpec], *, reuse: bool) -> Iterator[CellPlay]:
    player = Player(
        make_engine=lambda n: ProcgenEngine(game, slots=n, levels=LEVELS),
        actor=PolicyActor(policy, name="agent", n_actions=15, noop=4),
        n_slots=cells[0].inference.batch,
    )
    return player.play(CellPlay(cell, Greedy(), reuse) for cell in cells)


def plainly(game: str, policy: Any, cells: list[CellSpec]) -> Iterator[CellPlay]:
    for cell in cells:
        play = CellPlay(cell, Greedy(), True)
        engine = ProcgenEngine(game, slots=cell.design.slots, levels=LEVELS, draw=cell.draw)
        actor = PolicyActor(policy, name="agent", n_actions=15, noop=4)
        for position, outcome in enumerate(
            play_plainly(play, engine=engine, actor=actor, batch=cell.inference.batch)
        ):
            play.put(position, outcome)
        yield play


def measure(policy: Any, plays: Callable[[], Iterator[CellPlay]]) -> tuple[float, str]:
    """CPU seconds, and the hash of everything filed."""
    with tempfile.TemporaryDirectory() as folder, one_torch_thread():
        store = Store(folder)
        store.prepare()
        start = time.process_time()
        for play in plays():
            file_cell(store, play, policy)
        seconds = time.process_time() - start
        digest = hashlib.sha256()
        for path in sorted(Path(folder, "cells").iterdir()):
            digest.update(path.name.encode() + path.read_bytes())
        return seconds, digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", nargs="?", default="agents/starpilot-easy-impala-100k-s1")
    parser.add_argument("--game", default="starpilot")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch", type=int, default=INFERENCE_BATCH, help="rows of one inference")
    parser.add_argument("--plain", action="store_true", help="compare bytes with the plain loop too")
    arguments = parser.parse_args()
    game = arguments.game
    policy = PolicySource(arguments.checkpoint).load()
    cells = [
        CellSpec(
            make_spec(game), Run(agent="a", seed=1), policy.fingerprint, "greedy", "test", LEVELS, draw,
            inference=Inference(arguments.batch, "torch"),
        )
        for draw in range(arguments.draws)
    ]  # fmt: skip
    ratios = []
    for number in range(arguments.rounds):
        with_reuse, mine = measure(policy, lambda: queue(game, policy, cells, reuse=True))
        without, other = measure(policy, lambda: queue(game, policy, cells, reuse=False))
        ratios.append(without / with_reuse)
        same = "the same bytes" if mine == other else "OTHER BYTES"
        print(
            f"round {number}: {with_reuse:.1f} s against {without:.1f} s, {same}, ratio {ratios[-1]:.2f}",
            flush=True,
        )
        if arguments.plain and number == 0:
            seconds, plain = measure(policy, lambda: plainly(game, policy, cells))
            print(
                f"plain loop: {seconds:.1f} s, {'the same bytes' if plain == mine else 'OTHER BYTES'}",
                flush=True,
            )
    print(
        f"{game}, {128 * arguments.draws} greedy episodes on {LEVELS}: median {statistics.median(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
