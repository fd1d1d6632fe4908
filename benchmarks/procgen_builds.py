"""Do the two builds of ProcGen play the same episodes and draw the same frames?

Write what one build does with seeded actions, once with each Python, then compare:

    python3.11 benchmarks/procgen_builds.py --out mirror.json
    python3.13 benchmarks/procgen_builds.py --out gym.json --compare mirror.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

from gapfloor.engines.procgen import GAMES, N_ACTIONS, ProcgenEngine, wheel_version
from gapfloor.levels.schedule import LevelSet

SLOTS, STEPS = 8, 400


def play(game: str) -> dict[str, object]:
    """Hashes of what `game` returns under seeded uniform actions, the frames one by one."""
    rng = np.random.default_rng(0)
    engine = ProcgenEngine(game, slots=SLOTS, levels=LevelSet(0, 200), draw=0)
    columns = {name: hashlib.sha256() for name in ("rewards", "firsts", "levels")}
    frames = []
    for _ in range(STEPS):
        observations, rewards, firsts = engine.step(rng.integers(N_ACTIONS, size=SLOTS))
        columns["rewards"].update(np.asarray(rewards, np.float32).tobytes())
        columns["firsts"].update(np.asarray(firsts, np.uint8).tobytes())
        columns["levels"].update(np.asarray(engine.level_seeds, np.int32).tobytes())
        frames += [hashlib.sha256(frame.tobytes()).hexdigest()[:12] for frame in observations]
    engine.close()
    return {**{name: found.hexdigest()[:12] for name, found in columns.items()}, "frames": frames}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--compare", type=Path)
    chosen = parser.parse_args()
    here = {"build": wheel_version(), "games": {game: play(game) for game in GAMES}}
    chosen.out.write_text(json.dumps(here))
    if chosen.compare is None:
        return
    there = json.loads(chosen.compare.read_text())
    print(f"{here['build']} and {there['build']}, {SLOTS} slots, {STEPS} steps, draw 0 of levels 0:200")
    print("| game | rewards | episode ends | levels | frames that differ |\n|---|---|---|---|---|")
    for game in GAMES:
        mine, other = here["games"][game], there["games"][game]
        same = ["same" if mine[name] == other[name] else "differ" for name in ("rewards", "firsts", "levels")]
        differ = sum(a != b for a, b in zip(mine["frames"], other["frames"], strict=True))
        print(f"| {game} | {' | '.join(same)} | {differ} of {SLOTS * STEPS} |")


if __name__ == "__main__":
    main()
