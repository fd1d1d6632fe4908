"""Stable-Baselines3's `evaluate_policy` on ProcGen, one process of it; `bench.py` starts one per level set.

    python benchmarks/peers/procgen_sb3.py CHECKPOINT --game starpilot --levels 0:200 --episodes 384 --network own

The engine and the weights are those that gapfloor evaluates. `--network own` is an `ActorCriticPolicy` of SB3 with the
IMPALA encoder as its features extractor, called as SB3 calls it; `--network ours` is the same network in gapfloor's
channels-last layout behind a `predict` method. One thread. Prints the counted steps.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv, VecTransposeImage

from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.levels import LevelSet
from gapfloor.policies.load import checkpoint_path
from gapfloor.rules import softmax
from gapfloor.training.checkpoint import load_agent
from gapfloor.training.checkpoint_file import read_checkpoint

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


class OurNetwork:
    """The agent as gapfloor runs it in torch, behind SB3's `predict`."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent.eval()
        self._rng = np.random.default_rng(0)

    def predict(
        self,
        observations: np.ndarray,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[np.ndarray, Any]:
        with torch.inference_mode():
            logits = self._agent(torch.from_numpy(np.ascontiguousarray(observations)))[0].numpy()
        if deterministic:
            return logits.argmax(axis=1), state
        cumulative = softmax(logits).cumsum(axis=1)
        drawn = (cumulative < self._rng.random(len(logits))[:, None]).sum(axis=1)
        return drawn.clip(max=logits.shape[1] - 1), state


class Extractor(BaseFeaturesExtractor):
    """The agent's encoder where SB3 expects a network from images to features."""

    def __init__(self, space: Any, encoder: Any) -> None:
        super().__init__(space, encoder.features)
        self._encoder = encoder

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self._encoder(images)


def own_policy(agent: Any, env: VecEnv) -> ActorCriticPolicy:
    """SB3's own policy class with the weights of the agent."""
    policy = ActorCriticPolicy(
        env.observation_space, env.action_space, lambda _: 0.0, net_arch=[], ortho_init=False,
        features_extractor_class=Extractor, features_extractor_kwargs={"encoder": agent.encoder},
    )  # fmt: skip
    policy.action_net.load_state_dict(agent.policy.state_dict())
    policy.set_training_mode(False)
    return policy


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--game", required=True)
    parser.add_argument("--levels", required=True)
    parser.add_argument("--episodes", type=int, default=384)
    parser.add_argument("--rule", choices=["sampled", "greedy"], default="sampled")
    parser.add_argument("--network", choices=["own", "ours"], default="own")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    agent = load_agent(read_checkpoint(Path(checkpoint_path(chosen.checkpoint))))
    env: VecEnv = ProcgenVecEnv(chosen.game, LevelSet.parse(chosen.levels))
    if chosen.network == "own":
        env = VecTransposeImage(env)
        model: Any = own_policy(agent, env)
    else:
        model = OurNetwork(agent)
    _, lengths = evaluate_policy(
        model, env, chosen.episodes, deterministic=chosen.rule == "greedy", warn=False,
        return_episode_rewards=True,
    )  # fmt: skip
    print(json.dumps({"steps": int(sum(lengths))}))


if __name__ == "__main__":
    main()
