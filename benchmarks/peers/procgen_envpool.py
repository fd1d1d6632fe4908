"""Random play in EnvPool's ProcGen, one process of it; `bench.py` starts one per level set.

    python benchmarks/peers/procgen_envpool.py '{"starpilot": 30000}' --levels 0:200

Plays so many steps of each game in 32 environments on one thread, with actions made beforehand and nothing counted or
stored. Prints the steps.
"""

from __future__ import annotations

import argparse
import json

import envpool
import numpy as np

SLOTS = 32
N_ACTIONS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("steps", help="JSON: game -> number of steps")
    parser.add_argument("--levels", required=True)
    chosen = parser.parse_args()
    start, stop = (int(part) for part in chosen.levels.split(":"))
    rng = np.random.default_rng(0)
    total = 0
    for game, steps in json.loads(chosen.steps).items():
        env = envpool.make(
            f"{game.capitalize()}Easy-v0", env_type="gymnasium", num_envs=SLOTS, num_threads=1, seed=0,
            num_levels=stop - start, start_level=start,
        )  # fmt: skip
        env.reset()
        actions = rng.integers(0, N_ACTIONS, (-(-steps // SLOTS), SLOTS)).astype(np.int32)
        for row in actions:
            env.step(row)
        total += actions.size
        env.close()
    print(json.dumps({"steps": total}))


if __name__ == "__main__":
    main()
