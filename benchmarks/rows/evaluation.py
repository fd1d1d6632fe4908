"""Evaluation of our checkpoints and of what users bring, against the library that made it.

The floor on the same levels is in our time. Our checkpoints are played by Stable-Baselines3 as models of its own class.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from contest import AGENTS, EPISODES, FEW, HERE, LEVELS, Contest, gapfloor, peers, timed

PEERS = {"sb3": "SB3 evaluate_policy", "torch": "a batched torch loop", "own": "a plain loop"}


def rows(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    """Rows by name; the models are made when the first row is measured, which does not count."""

    def row(
        loop: str, file: str, policy: str, game: str, rule: str, episodes: int = EPISODES
    ) -> Callable[[], Contest]:
        return lambda: _contest(
            loop, _models(options.quick) / file, policy, game, rule, episodes, options.quick
        )

    def ours(game: str, rule: str, episodes: int = EPISODES) -> Callable[[], Contest]:
        return row("sb3", f"{game}.zip", str(AGENTS / f"{game}-easy-impala-100k-s1"), game, rule, episodes)

    found = {
        "sampled-starpilot": ours("starpilot", "sampled"),
        # A miner's episodes are long: SB3 would need an hour for as many greedy ones as ours.
        "sampled-miner": ours("miner", "sampled", 32),
        "greedy-starpilot": ours("starpilot", "greedy"),
        "greedy-fruitbot": ours("fruitbot", "greedy"),
        "greedy-miner": ours("miner", "greedy", 32),
        "own-cartpole": row("own", "plain.pt", "acting:networks:Leaning", "gym:CartPole-v1", "own"),
    }
    plain, sb3 = "statedict:{},net=networks:PlainImpala", "sb3:{},extractor=networks:ImpalaExtractor"
    for rule in ("sampled", "greedy"):
        found |= {
            f"sb3-starpilot-{rule}": row("sb3", "starpilot.zip", sb3, "starpilot", rule),
            f"module-starpilot-{rule}": row("torch", "plain.pt", plain, "starpilot", rule),
        }
        for game in ("CartPole-v1", "LunarLander-v3", "Hopper-v5"):
            name = game.partition("-")[0].lower()
            found[f"sb3-{name}-{rule}"] = row("sb3", f"{name}.zip", "sb3:{}", f"gym:{game}", rule)
    return found


@functools.cache
def _models(is_quick: bool) -> Path:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    command = [sys.executable, str(HERE / "peers" / "networks.py"), folder.name]
    subprocess.run([*command, "--quick"] if is_quick else command, check=True, capture_output=True, text=True)
    return Path(folder.name)


def _contest(
    loop: str, model: Path, policy: str, game: str, rule: str, episodes: int, is_quick: bool
) -> Contest:
    few = ["--episodes", str(FEW), "--draws", "0"] if is_quick else []
    episodes = FEW if is_quick else episodes
    theirs = [
        [loop, str(model), "--game", game.removeprefix("gym:"), "--levels", levels, "--rule", rule,
         "--episodes", str(episodes)]
        for levels in LEVELS
    ]  # fmt: skip
    line, peer = policy.format(model), f"{PEERS[loop]}, 2 processes"
    if episodes not in (FEW, EPISODES):
        peer += f" ({episodes} episodes per level set; ours {EPISODES})"
    return Contest(
        peer,
        lambda: timed(lambda: gapfloor("evaluate", line, "--game", game, "--rules", rule, *few)),
        lambda _: timed(lambda: peers("library_loops.py", *theirs)),
    )
