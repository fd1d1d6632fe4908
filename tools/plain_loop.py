"""Returns by a loop that uses ProcGen and PyTorch and nothing of gapfloor, to check gapfloor's own.

    python tools/plain_loop.py bigfish up                              # one constant action, by its number or "up"
    python tools/plain_loop.py bigfish random
    python tools/plain_loop.py heist checkpoint.safetensors --rule greedy

It plays held-out levels 1000:1100 (`--train` for 0:200), the first episode of each of 384 environments, and prints mean
and standard error over episodes. A checkpoint is an IMPALA network as `tools/public_agents.py` writes it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
import torch
from procgen import ProcgenGym3Env
from safetensors.torch import load_file
from torch.nn.functional import conv2d, linear, max_pool2d, relu


def impala(path: str, rule: str) -> Callable[[np.ndarray], np.ndarray]:
    """The network as a function from frames to actions."""
    weights = load_file(path)

    def conv(name: str, x: torch.Tensor) -> torch.Tensor:
        return conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1)

    @torch.no_grad()
    def act(frames: np.ndarray) -> np.ndarray:
        x = torch.from_numpy(frames).permute(0, 3, 1, 2) / 255
        for block in (f"encoder.blocks.{number}" for number in range(3)):
            x = max_pool2d(conv(f"{block}.conv", x), 3, 2, 1)
            for part in (f"{block}.residual0", f"{block}.residual1"):
                x = x + conv(f"{part}.conv1", relu(conv(f"{part}.conv0", relu(x))))
        x = relu(
            linear(
                relu(x.flatten(1)), weights["encoder.projection.weight"], weights["encoder.projection.bias"]
            )
        )
        logits = linear(x, weights["policy.weight"], weights["policy.bias"])
        chosen = (
            logits.argmax(1) if rule == "greedy" else torch.distributions.Categorical(logits=logits).sample()
        )
        return chosen.numpy().astype(np.int32)

    return act


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("game")
    parser.add_argument("policy", help="random, up, the number of an action, or a checkpoint")
    parser.add_argument("--rule", choices=("sampled", "greedy"), default="sampled")
    parser.add_argument("--train", action="store_true", help="play levels 0:200")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the levels' order and of the actions (default 1)"
    )
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    generator, slots = np.random.default_rng(given.seed), 384
    start, count = (0, 200) if given.train else (1000, 100)
    if given.policy == "random":
        act = lambda frames: generator.integers(0, 15, len(frames), dtype=np.int32)  # noqa: E731
    elif given.policy == "up" or given.policy.isdigit():
        action = 5 if given.policy == "up" else int(given.policy)
        act = lambda frames: np.full(len(frames), action, np.int32)  # noqa: E731
    else:
        act = impala(given.policy, given.rule)
    env = ProcgenGym3Env(
        slots, given.game, start_level=start, num_levels=count, distribution_mode="easy", rand_seed=given.seed
    )
    returns, running = np.zeros(slots), np.ones(slots, bool)
    while running.any():
        env.act(act(env.observe()[1]["rgb"]))
        rewards, _, first = env.observe()
        returns += rewards * running
        running &= ~first
    error = returns.std(ddof=1) / slots**0.5
    sys.stdout.write(
        f"{given.game} {given.policy}: {returns.mean():.2f} ± {error:.2f} ({slots} episodes)" + "\n"
    )


if __name__ == "__main__":
    main()
