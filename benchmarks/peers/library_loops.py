"""How users evaluate such models without gapfloor, one process of it: `bench.py` starts one per level set.

    python benchmarks/peers/library_loops.py sb3 ppo.zip --game CartPole-v1 --levels 0:200 --episodes 384 --rule sampled

`sb3` is `evaluate_policy` of Stable-Baselines3 on 16 environments (of ProcGen where the game's name has no version),
`torch` a batched loop of plain torch over ProcGen, `own` a loop over one Gymnasium environment. One thread. Prints the
counted steps.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import gymnasium
import numpy as np
import torch
from networks import Leaning, PlainImpala
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecTransposeImage

from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.levels.schedule import LevelSet

SLOTS = 16


class ProcgenVecEnv(VecEnv):
    """The engine as SB3 wants it."""

    def __init__(self, game: str, levels: LevelSet) -> None:
        self.engine = ProcgenEngine(game, slots=SLOTS, levels=levels)
        space = gymnasium.spaces.Box(0, 255, self.engine.observation_shape, np.uint8)
        super().__init__(SLOTS, space, gymnasium.spaces.Discrete(self.engine.n_actions))

    def reset(self) -> np.ndarray:
        return self.engine.observe()[0].copy()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> Any:
        observations, rewards, firsts = self.engine.step(self._actions)
        return observations.copy(), rewards.copy(), firsts.copy(), [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        self.engine.close()

    def get_attr(self, name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def sb3(chosen: argparse.Namespace) -> int:
    """Stable-Baselines3's own evaluation of its own model."""
    levels = LevelSet.parse(chosen.levels)
    env: Any = (
        make_vec_env(chosen.game, SLOTS, seed=levels.start)
        if "-v" in chosen.game
        else VecTransposeImage(ProcgenVecEnv(chosen.game, levels))
    )
    model = (SAC if "hopper" in chosen.model else PPO).load(chosen.model, device="cpu")
    _, lengths = evaluate_policy(
        model, env, chosen.episodes, deterministic=chosen.rule == "greedy", warn=False,
        return_episode_rewards=True,
    )  # fmt: skip
    return int(sum(lengths))


@torch.inference_mode()
def plain_torch(chosen: argparse.Namespace) -> int:
    """What evaluation scripts of ProcGen do: step a batch, count what ends."""
    network = PlainImpala()
    network.load_state_dict(torch.load(chosen.model, weights_only=True))
    env = ProcgenVecEnv(chosen.game, LevelSet.parse(chosen.levels))
    observations, lengths = env.reset(), np.zeros(SLOTS, dtype=int)
    counted = n_episodes = 0
    while n_episodes < chosen.episodes:
        logits = network(torch.from_numpy(observations))
        actions = (
            logits.argmax(1)
            if chosen.rule == "greedy"
            else torch.distributions.Categorical(logits=logits).sample()
        )
        env.step_async(actions.numpy())
        observations, _, ends, _ = env.step_wait()
        lengths += 1
        counted += int(lengths[ends].sum())
        n_episodes += int(ends.sum())
        lengths[ends] = 0
    return counted


def own(chosen: argparse.Namespace) -> int:
    """One environment, one action after the other."""
    levels = LevelSet.parse(chosen.levels)
    env, policy, counted = gymnasium.make(chosen.game), Leaning(), 0
    for episode in range(chosen.episodes):
        observation, _ = env.reset(seed=levels.start + episode % levels.n)
        is_over = False
        while not is_over:
            observation, _, ends, stops, _ = env.step(policy.act(observation))
            is_over = ends or stops
            counted += 1
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("loop", choices=["sb3", "torch", "own"])
    parser.add_argument("model")
    parser.add_argument("--game", required=True)
    parser.add_argument("--levels", required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--rule", choices=["sampled", "greedy", "own"], default="sampled")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    steps = {"sb3": sb3, "torch": plain_torch, "own": own}[chosen.loop](chosen)
    print(json.dumps({"steps": steps}))


if __name__ == "__main__":
    main()
