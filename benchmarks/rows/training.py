"""Training against CleanRL's ppo_procgen with the same hyperparameters, both on all cores.

Speeds are those that both programs report, without the start of the interpreter. CleanRL runs as it is, from a clone of
its repository, by an interpreter that has gym 0.23, tyro, torch and procgen.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from contest import Contest, Timed, timed
from gapfloor.machine import available_cores

ENVIRONMENTS, BATCH = 16, 16 * 256


def rows(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    return {
        f"train-starpilot-{precision}": functools.partial(_training, precision, options)
        for precision in ("float32", "bf16")
    }


def _training(precision: str, options: argparse.Namespace) -> Contest:
    """Two updates of PPO (one in bf16) against as many of CleanRL."""
    if options.cleanrl is None:
        raise RuntimeError("no clone of CleanRL was named (--cleanrl)")
    updates = 1 if options.quick or precision != "float32" else 2
    steps = updates * BATCH
    script = options.cleanrl.resolve() / "cleanrl" / "ppo_procgen.py"
    theirs = [
        str(options.cleanrl_python.absolute()), str(script), "--num-envs", str(ENVIRONMENTS), "--env-id", "starpilot",
        "--no-cuda", "--total-timesteps", str(steps),
    ]  # fmt: skip
    ours = [
        sys.executable, "-c", "import json, sys, gapfloor; gapfloor.train('starpilot', **json.loads(sys.argv[1]))",
        json.dumps({"train": "all", "steps": steps, "threads": available_cores(),
                    "precision": precision, "store": "."}),
    ]  # fmt: skip
    return Contest(
        "CleanRL ppo_procgen, float32",
        lambda: _reported(ours, steps, lambda _, folder: _last_logged(folder)),
        lambda _: _reported(theirs, steps, lambda out, _: float(re.findall(r"SPS: (\d+)", out)[-1])),
        "environment steps/s",
    )


def _last_logged(folder: Path) -> float:
    (path,) = folder.glob("log/*.jsonl")
    return float(json.loads(path.read_text().splitlines()[-1])["steps_per_second"])


def _reported(command: list[str], steps: int, speed: Callable[[str, Path], float]) -> Timed:
    """The turn of a command at the steps per second that it reports itself."""
    variables = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    with tempfile.TemporaryDirectory() as folder:
        found: list[float] = []

        def run() -> float:
            done = subprocess.run(
                command, cwd=folder, env=variables, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
            found.append(speed(done.stdout, Path(folder)))
            return float(steps)

        whole = timed(run)
    return Timed(steps, steps / found[0], whole.cpu, whole.other_load)
