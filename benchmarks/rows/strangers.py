"""Evaluation of what users bring, against the library that made it: the floor on the same levels is in our time."""

from __future__ import annotations

import argparse
import atexit
import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from contest import EPISODES, FEW, HERE, LEVELS, Contest, gapfloor, peers, timed


def rows(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    """Rows by name; a model is made when its first row is measured, which does not count."""

    def row(loop: str, file: str, policy: str, game: str, rule: str) -> Callable[[], Contest]:
        return lambda: _contest(
            loop, _models(options.quick) / file, policy, game, rule, is_quick=options.quick
        )

    found = {}
    for rule in ("sampled", "greedy"):
        sb3 = functools.partial(row, "sb3", rule=rule)
        found |= {
            f"sb3-starpilot-{rule}": sb3("starpilot.zip", "sb3:{},trust=yes", "starpilot"),
            f"module-starpilot-{rule}": row(
                "torch", "plain.pt", "statedict:{},net=networks:PlainImpala", "starpilot", rule
            ),
            f"sb3-cartpole-{rule}": sb3("cartpole.zip", "sb3:{}", "gym:CartPole-v1"),
            f"sb3-lunarlander-{rule}": sb3("lunarlander.zip", "sb3:{}", "gym:LunarLander-v3"),
            f"sb3-hopper-{rule}": sb3("hopper.zip", "sb3:{}", "gym:Hopper-v5"),
        }
    found["own-cartpole"] = row("own", "plain.pt", "acting:networks:Leaning", "gym:CartPole-v1", "own")
    return found


@functools.cache
def _models(is_quick: bool) -> Path:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    command = [sys.executable, str(HERE / "peers" / "networks.py"), folder.name]
    subprocess.run([*command, "--quick"] if is_quick else command, check=True, capture_output=True, text=True)
    return Path(folder.name)


def _contest(loop: str, model: Path, policy: str, game: str, rule: str, *, is_quick: bool) -> Contest:
    few = ["--episodes", str(FEW), "--draws", "0"] if is_quick else []
    theirs = [
        [loop, str(model), "--game", game.removeprefix("gym:"), "--levels", levels, "--rule", rule,
         "--episodes", str(FEW if is_quick else EPISODES)]
        for levels in LEVELS
    ]  # fmt: skip
    line = policy.format(model)
    return Contest(
        {"sb3": "SB3 evaluate_policy", "torch": "a batched torch loop", "own": "a plain loop"}[loop]
        + ", 2 processes",
        lambda: timed(lambda: gapfloor("evaluate", line, "--game", game, "--rules", rule, *few)),
        lambda _: timed(lambda: peers("library_loops.py", *theirs)),
    )
