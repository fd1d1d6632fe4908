"""Evaluation of gapfloor's own checkpoints against Stable-Baselines3 with the same weights."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from contest import AGENTS, EPISODES, FEW, LEVELS, Contest, gapfloor, peers, timed


def rows(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    def play(game: str, rule: str, network: str = "own", episodes: int = EPISODES) -> Callable[[], Contest]:
        return lambda: _evaluation(game, rule, network, FEW if options.quick else episodes, options.quick)

    return {
        "sampled-starpilot": play("starpilot", "sampled"),
        "sampled-starpilot-our-network": play("starpilot", "sampled", "ours"),
        # A miner's episodes are long: SB3 would need an hour for as many greedy ones as ours.
        "sampled-miner": play("miner", "sampled", episodes=32),
        "greedy-starpilot": play("starpilot", "greedy"),
        "greedy-fruitbot": play("fruitbot", "greedy"),
        "greedy-miner": play("miner", "greedy", episodes=32),
    }


def _evaluation(game: str, rule: str, network: str, episodes: int, is_quick: bool) -> Contest:
    agent = str(AGENTS / f"{game}-easy-impala-100k-s1")
    few = ["--episodes", str(FEW), "--draws", "0"] if is_quick else []
    theirs = [
        [agent, "--game", game, "--levels", levels, "--episodes", str(episodes), "--rule", rule,
         "--network", network]
        for levels in LEVELS
    ]  # fmt: skip
    peer = {"own": "SB3, its own policy", "ours": "SB3, our torch network"}[network]
    if episodes != (FEW if is_quick else EPISODES):
        peer += f" ({episodes} episodes per level set; ours {EPISODES})"
    return Contest(
        peer,
        lambda: timed(lambda: gapfloor("evaluate", agent, "--game", game, "--rules", rule, *few)),
        lambda _: timed(lambda: peers("procgen_sb3.py", *theirs)),
    )
