"""Networks and policies as users write them, for both sides of the rows in `rows/evaluation.py`.

    python benchmarks/peers/networks.py FOLDER [--quick]

writes their models into a folder: our checkpoints of three games as PPO of Stable-Baselines3 with an IMPALA network of
its own, PPO on CartPole and LunarLander, SAC on Hopper (untrained), and the state_dict of a plain torch module.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn

from gapfloor.training.checkpoint import load_agent, read_checkpoint
from gapfloor.training.encoders import build_encoder

AGENTS = Path(__file__).parents[2] / "agents"
FRAME = (64, 64, 3)


class ImpalaExtractor(BaseFeaturesExtractor):
    """The IMPALA encoder as a features extractor of Stable-Baselines3."""

    def __init__(self, observation_space: Any, features_dim: int = 256) -> None:
        super().__init__(observation_space, features_dim)
        self.encoder = build_encoder("impala", observation_shape=FRAME)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.encoder(images)


class PlainImpala(nn.Module):
    """An actor with a value head that takes frames in [0, 1], channels first, in a contiguous copy."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = build_encoder("impala", observation_shape=FRAME)
        self.policy = nn.Linear(256, 15)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        images = frames.float().permute(0, 3, 1, 2).contiguous() / 255.0
        return self.policy(self.encoder(images))


class Leaning:
    """A controller of CartPole that only returns actions: it pushes towards the side on which the pole leans."""

    def act(self, observation: np.ndarray) -> int:
        return int(observation[2] + 0.3 * observation[3] > 0)


class _Frames(gymnasium.Env):
    """Says what frames and actions are; it is never played."""

    observation_space = gymnasium.spaces.Box(0, 255, FRAME, np.uint8)
    action_space = gymnasium.spaces.Discrete(15)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    for game in ("starpilot", "fruitbot", "miner"):
        agent = load_agent(read_checkpoint(AGENTS / f"{game}-easy-impala-100k-s1" / "checkpoint.safetensors"))
        kwargs = {"features_extractor_class": ImpalaExtractor, "net_arch": [], "ortho_init": False}
        model = PPO("CnnPolicy", _Frames(), policy_kwargs=kwargs, n_steps=16, batch_size=16, device="cpu")
        model.policy.features_extractor.encoder.load_state_dict(agent.encoder.state_dict())
        model.policy.action_net.load_state_dict(agent.policy.state_dict())
        model.save(chosen.folder / f"{game}.zip")
        if game == "starpilot":
            plain = PlainImpala()
            plain.encoder.load_state_dict(agent.encoder.state_dict())
            plain.policy.load_state_dict(agent.policy.state_dict())
            torch.save(plain.state_dict(), chosen.folder / "plain.pt")

    for game in ("CartPole-v1", "LunarLander-v3"):
        model = PPO("MlpPolicy", game, seed=1, device="cpu")
        model.learn(2_048 if chosen.quick else 20_000).save(chosen.folder / game.partition("-")[0].lower())
    SAC("MlpPolicy", "Hopper-v5", seed=1, device="cpu").save(chosen.folder / "hopper.zip")


if __name__ == "__main__":
    from networks import main as main_of_module  # classes are saved under the name of this file

    main_of_module()
