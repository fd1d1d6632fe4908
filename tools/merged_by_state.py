"""Argmax over classes of actions that are equivalent in the current state, next to argmax and the rule `merged`.

    python tools/merged_by_state.py miner agents/miner-easy-impala-1M-s1
    python tools/merged_by_state.py heist agents-public/heist-baseline-*/checkpoint.safetensors --levels 1000:1100

The rule `merged` has one partition per game. This script asks the engine in every state: it clones the state, tries
each action for five steps like `gapfloor calibrate`, and sums probabilities over actions that are equivalent there.
Each level is played once, which is enough for rules without randomness. It prints mean and standard error over levels.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np

from gapfloor.actions.partition import Partition, merged_argmax
from gapfloor.calibration.classes import CalibrationSettings, shipped_classes
from gapfloor.calibration.cloning import Cloner
from gapfloor.engines.engine import Engine
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.levels.schedule import LevelSet
from gapfloor.policies.load import PolicySource
from gapfloor.rules.rule import softmax

#: The partition of the actions in the state of a slot.
Classes = Callable[[Engine, int], Partition]


def returns(game: str, policy: str, levels: LevelSet, classes: Classes) -> np.ndarray:
    """The return on each level."""
    play = PolicySource(policy).load()
    seeds = list(range(levels.start, levels.stop))
    engine = engine_from_spec(make_spec(game), slots=len(seeds), levels=levels)
    for slot, seed in enumerate(seeds):
        engine.begin(slot, seed)
    total, running = np.zeros(len(seeds)), np.ones(len(seeds), bool)
    while running.any():
        open_slots = np.flatnonzero(running)
        probabilities = softmax(play.logits(engine.observe()[0][open_slots]))
        actions = np.full(len(seeds), engine.noop)
        for row, slot in enumerate(open_slots):
            actions[slot] = merged_argmax(probabilities[row : row + 1], classes(engine, slot))[0]
        _, rewards, firsts = engine.step(actions)
        total += rewards * running
        running &= ~firsts
    engine.close()
    return total


def by_state(game: str) -> Classes:
    """Classes measured in the state itself; a frame that was seen before keeps its classes."""
    cloner = Cloner(make_spec(game), horizon=CalibrationSettings().horizon)
    known: dict[tuple[int, bytes], Partition] = {}

    def classes(engine: Engine, slot: int) -> Partition:
        key = (int(engine.level_seeds[slot]), engine.observe()[0][slot].tobytes())
        if key not in known:
            known[key] = cloner.partition(engine.save(slot), turn=len(known))
        return known[key]

    return classes


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("game")
    parser.add_argument("policies", nargs="+", help="checkpoints")
    parser.add_argument("--levels", nargs="+", default=["0:200", "1000:1100"])
    given = parser.parse_args()
    shipped = shipped_classes(given.game)
    if shipped is None:
        parser.error(f"There are no classes for {given.game}.")
    single, whole = Partition.from_labels(list(range(shipped.partition.n_actions))), shipped.partition
    rules: dict[str, Classes] = {
        "argmax": lambda *_: single, "merged, per game": lambda *_: whole, "merged, per state": by_state(given.game)
    }  # fmt: skip
    for policy in given.policies:
        for text in given.levels:
            for name, classes in rules.items():
                found = returns(given.game, policy, LevelSet.parse(text), classes)
                error = found.std(ddof=1) / len(found) ** 0.5
                sys.stdout.write(
                    f"{given.game}  {policy}  {text}  {name}: {found.mean():.2f} ± {error:.2f} ({len(found)} levels)\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
