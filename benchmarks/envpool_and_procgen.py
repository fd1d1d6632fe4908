"""EnvPool's ProcGen compared with ProcGen itself: the same levels and actions in both, and floors with z values.

    .venv/bin/python benchmarks/envpool_and_procgen.py frames [--steps 3000]
    .venv/bin/python benchmarks/envpool_and_procgen.py floors PROCGEN_STORE ENVPOOL_STORE
    .venv/bin/python benchmarks/envpool_and_procgen.py layouts

`frames` plays all sixteen games at random on held-out levels and counts steps whose reward or end differs, and
observations and pixels that do. `floors` reads two stores made by `gapfloor floor` and `gapfloor floor envpool:...`.
`layouts` is the CPU time of a step in one pool of 32 environments and in 32 pools of one, and of making such a pool.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from gapfloor.engines import envpool
from gapfloor.engines.procgen import GAMES, PAPER_GAMES, ProcgenEngine
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import read_episodes

SLOTS = 8
LEVELS = LevelSet(1000, 1100)


def compare_frames(game: str, steps: int) -> str:
    """One row of the table: both engines on the same levels and actions for `steps` steps."""
    theirs = ProcgenEngine(game, slots=SLOTS, levels=LEVELS)
    ours = envpool.engine_from_spec(envpool.make_spec(game), slots=SLOTS, levels=LEVELS)
    ours.observe()
    for slot, level in enumerate(ours.level_seeds.tolist()):
        theirs.begin(slot, level)
    episodes = other_outcomes = other_frames = 0
    pixels = most = 0.0
    rows = np.random.default_rng(0).integers(0, ProcgenEngine.n_actions, (steps // SLOTS, SLOTS))
    for row in rows:
        _, rewards, ends = theirs.step(row)
        frames, our_rewards, our_ends = ours.step(row)
        other_outcomes += int(((rewards != our_rewards) | (ends != our_ends)).sum())
        episodes += int(our_ends.sum())
        for slot in np.flatnonzero(our_ends):
            theirs.begin(int(slot), int(ours.level_seeds[slot]))
        differences = np.abs(frames.astype(np.int16) - theirs.observe()[0]).max(axis=-1).reshape(SLOTS, -1)
        other_frames += int((differences > 0).any(axis=1).sum())
        pixels += float((differences > 0).mean(axis=1).sum())
        most = max(most, int(differences.max()))
    n = rows.size
    return (
        f"| {game} | {n:,} | {episodes} | {other_outcomes} | {100 * other_frames / n:.2f} | "
        f"{100 * pixels / n:.4f} | {most:g} |"
    )


def floor_of(store: str, game: str, level_set: str) -> tuple[float, float, int]:
    """Mean return, its standard error and the number of episodes of a uniform floor."""
    cells = [
        cell
        for cell in Store(store).cells()
        if cell.manifest.labels["reference"] == "uniform"
        and (cell.manifest.labels["game"], cell.manifest.labels["level_set"]) == (game, level_set)
    ]
    returns = np.concatenate([read_episodes(cell.path)["episode_return"].to_numpy() for cell in cells])
    return float(returns.mean()), float(returns.std(ddof=1) / math.sqrt(len(returns))), len(returns)


def compare_floors(procgen: str, other: str) -> None:
    """The table of floors, one line per game and level set, and a summary of the z values."""
    print("| game | level set | ProcGen | EnvPool | z |\n|---|---|---|---|---|")
    values = []
    for game in PAPER_GAMES:
        for level_set in ("train", "test"):
            (mean, sem, n), (our_mean, our_sem, our_n) = (
                floor_of(store, game, level_set) for store in (procgen, other)
            )
            values.append((our_mean - mean) / math.hypot(sem, our_sem))
            print(
                f"| {game} | {level_set} | {mean:.3f} ± {sem:.3f} ({n}) | {our_mean:.3f} ± {our_sem:.3f} ({our_n}) | "
                f"{values[-1]:+.2f} |"
            )
    z = np.array(values)
    print(f"largest |z| {np.abs(z).max():.2f} of {len(z)}; mean of z² {np.mean(z**2):.2f}")


def compare_layouts(game: str, steps: int = 100, slots: int = 32) -> str:
    """CPU time, all threads together: wall time on a shared machine says little."""
    import envpool as library

    spec = envpool.make_spec(game)
    rows = np.random.default_rng(0).integers(0, ProcgenEngine.n_actions, (steps, slots)).astype(np.int32)
    numbers = np.arange(slots, dtype=np.int32)
    pool = library.make(
        f"{game.capitalize()}Easy-v0", env_type="gymnasium", num_envs=slots, num_threads=1, num_levels=200,
        channel_first=False,
    )  # fmt: skip
    pool.reset()
    start = time.process_time()
    for row in rows:
        pool._send([numbers, numbers, row])
        pool._recv()
    together = time.process_time() - start
    engine = envpool.engine_from_spec(spec, slots=slots, levels=LevelSet(0, 200))
    start = time.process_time()
    engine.observe()
    making = time.process_time() - start
    start = time.process_time()
    for row in rows:
        engine.step(row)
    apart = time.process_time() - start
    step = 1e6 / rows.size
    return f"| {game} | {together * step:.0f} | {apart * step:.0f} | {1e3 * making / slots:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    frames = commands.add_parser("frames")
    frames.add_argument("--steps", type=int, default=3000)
    floors = commands.add_parser("floors")
    floors.add_argument("procgen")
    floors.add_argument("envpool")
    commands.add_parser("layouts")
    arguments = parser.parse_args()
    if arguments.command == "layouts":
        compare_layouts(PAPER_GAMES[0], steps=1)  # loads the assets
        print(
            "| game | one pool, µs per step | one pool per slot, µs per step | creating a pool, ms |\n|---|---|---|---|"
        )
        for game in PAPER_GAMES:
            print(compare_layouts(game), flush=True)
        return
    if arguments.command == "floors":
        compare_floors(arguments.procgen, arguments.envpool)
        return
    print(f"EnvPool {envpool.engine_version()}")
    print("| game | steps | episodes | other reward or end | other frames % | other pixels % | most |")
    print("|---|---|---|---|---|---|---|")
    for game in GAMES:
        print(compare_frames(game, arguments.steps), flush=True)


if __name__ == "__main__":
    main()
