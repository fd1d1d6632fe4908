"""Whether the entropy left in a policy predicts what the action rule changes, over runs with other entropy bonuses.

    gapfloor train starpilot --steps 100000 --entropy-coefficient 0.03 --checkpoint-every 1 --store series/0.03
    python tools/entropy_series.py series/* --draws 33,34,35

Each folder is a store with the runs of one weight. The script evaluates each run under both rules on both level sets
and prints a row per run: the entropy of the sampled policy, over all actions and over those that differ, the return
under each rule and their difference on held-out levels, and two means that a training loop would have logged, next to
the fixed checkpoint. The *in-loop held-out mean* is that of a test environment that runs along while the weights
change: the last 100 episodes of 16 slots that play each rollout's weights for 256 steps. It needs the checkpoint of
every update (`--checkpoint-every 1`); the first rollout, of untrained weights, is left out. As in a training loop,
an episode counts when it ends, so a short run has mostly short episodes. The last line is
Spearman's rank correlation, with the p of all permutations or of 100,000 random ones.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np
from scipy.stats import permutation_test, spearmanr

import gapfloor
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.levels.schedule import LevelSet
from gapfloor.policies.load import PolicySource
from gapfloor.rules.rule import softmax
from gapfloor.tables.cells import counted
from gapfloor.training.checkpoint import read_header
from gapfloor.training.log import RECENT_EPISODES, read_history, read_in_loop

SLOTS, STEPS = 16, 256
HEADER = (
    "weight", "run", "entropy", "merged entropy", "sampled, held-out", "greedy, held-out", "sampled - greedy",
    "in-loop, training", "sampled, training", "in-loop, held-out",
)  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="+", type=Path, help="stores, one per weight of the entropy bonus")
    parser.add_argument("--draws", default="33,34,35", help="draws to play (default 33,34,35)")
    parser.add_argument("--episodes", type=int, default=128, help="episodes per cell and draw (default 128)")
    given = parser.parse_args()
    draws = tuple(map(int, given.draws.split(",")))
    rows = [
        measured(store, folder, draws=draws, episodes=given.episodes)
        for store in given.stores
        for folder in sorted((store / "runs").iterdir())
    ]
    rows.sort(key=lambda row: (row[0], row[1]))
    sys.stdout.write("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER) + "\n")
    for weight, run, raw, merged, *returns in rows:
        means = " | ".join("" if value is None else value for value in returns[1:])
        sys.stdout.write(f"| {weight:g} | {run} | {raw:.2f} | {merged:.2f} | {means} |\n")
    if len(rows) > 3:
        entropies, effects = [row[3] for row in rows], [row[4] for row in rows]
        test = permutation_test(
            (entropies,), lambda values: spearmanr(values, effects).statistic,
            permutation_type="pairings", n_resamples=100_000, rng=np.random.default_rng(0),
        )  # fmt: skip
        sys.stdout.write(
            f"\nSpearman's correlation of merged entropy and sampled - greedy over {counted(len(rows), 'run')}: "
            f"{test.statistic:.2f} (p = {test.pvalue:.3f}).\n"
        )


def measured(store: Path, folder: Path, *, draws: tuple[int, ...], episodes: int) -> tuple:
    """The row of a run: weight, name, entropies, the difference of the rules, and what is printed of the rest."""
    header = read_header(folder / "checkpoint.safetensors")
    game = str(header["game"])
    result = gapfloor.evaluate(
        folder, game=game, rules="sampled,greedy", draws=draws, episodes=episodes, probe=1024, store=store, workers=1
    )  # fmt: skip
    cells = {(cell.rule, cell.level_set): cell for cell in result.cells if not cell.reference}
    sampled, greedy = cells["sampled", "test"], cells["greedy", "test"]
    difference = sampled.mean - greedy.mean
    log = read_in_loop(folder / "log.parquet")
    return (
        header["hyperparameters"]["entropy_coefficient"], folder.name,
        sampled.entropy_raw, sampled.entropy_merged, difference,
        f"{sampled.mean:.2f} ± {sampled.sem:.2f}", f"{greedy.mean:.2f} ± {greedy.sem:.2f}",
        f"{difference:+.2f} ± {math.hypot(sampled.sem, greedy.sem):.2f}", f"{log[-1].episode_return:.2f}",
        f"{cells['sampled', 'train'].mean:.2f}", in_loop_held_out(folder, game),
    )  # fmt: skip


def in_loop_held_out(folder: Path, game: str) -> str | None:
    """Mean and standard error of the last episodes of a test environment that runs along; None without checkpoints."""
    updates = int(read_header(folder / "checkpoint.safetensors")["n_updates"])
    if len(list((folder / "history").glob("*.weights"))) < updates:
        return None
    kept = read_history(folder).kept
    generator = np.random.default_rng(33)
    engine = engine_from_spec(make_spec(game), slots=SLOTS, levels=LevelSet(1000, 1100), draw=33)
    running, ended = np.zeros(SLOTS), []
    for checkpoint in kept[:-1]:
        policy = PolicySource(str(checkpoint.path)).load()
        for _ in range(STEPS):
            chances = np.cumsum(softmax(policy.logits(engine.observe()[0])), axis=1)
            actions = (generator.random((SLOTS, 1)) < chances).argmax(axis=1)
            _, rewards, firsts = engine.step(actions)
            running += rewards
            ended += running[firsts].tolist()
            running[firsts] = 0.0
    engine.close()
    last = np.array(ended[-RECENT_EPISODES:])
    return f"{last.mean():.2f} ± {last.std(ddof=1) / math.sqrt(len(last)):.2f}"


if __name__ == "__main__":
    main()
