"""The network that is trained: an encoder with a policy head and a value head.

Its tensors are named `encoder.*`, `policy.*` and `value.*`; images come in as the engine gives them (uint8,
height x width x channels) and are divided by 255. Initialisation is CleanRL's: torch's default in the
encoder, orthogonal heads with gains .01 and 1, so that a new policy is almost uniform.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from gapfloor.training.encoders import build_encoder


class Agent(nn.Module):
    """Logits and values of observations."""

    def __init__(
        self, encoder: str, *, observation_shape: tuple[int, ...], n_actions: int, is_blind: bool = False
    ) -> None:
        super().__init__()
        self.is_blind = is_blind
        self.encoder = build_encoder(encoder, observation_shape=observation_shape)
        features = self.encoder.features
        assert isinstance(features, int)
        self.policy = nn.Linear(features, n_actions)
        self.value = nn.Linear(features, 1)

    def encode(self, observations: torch.Tensor) -> torch.Tensor:
        """Features of uint8 observations `[N, height, width, channels]`; a blind agent sees black images."""
        if self.is_blind:
            # Every row is the same black image: one is encoded, and gradients add up over its copies.
            return self._features(torch.zeros_like(observations[:1])).expand(len(observations), -1)
        return self._features(observations)

    def _features(self, observations: torch.Tensor) -> torch.Tensor:
        # Permuting (not copying) images that lie as height x width x channels gives channels-last tensors.
        images = observations.permute(0, 3, 1, 2).to(torch.float32).div_(255.0)
        features: torch.Tensor = self.encoder(images)
        return features

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits `[N, actions]` and values `[N]` of uint8 observations."""
        features = self.encode(observations)
        return self.policy(features), self.value(features).squeeze(1)


def make_agent(
    encoder: str, *, observation_shape: tuple[int, ...], n_actions: int, seed: int, is_blind: bool = False
) -> Agent:
    """A new agent whose weights depend on `seed` alone, laid out channels-last."""
    with torch.device("meta"):
        agent = Agent(encoder, observation_shape=observation_shape, n_actions=n_actions, is_blind=is_blind)
    agent = agent.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(seed)
    for module in agent.encoder.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            # torch's `reset_parameters` draws from the global generator; this is the same law from our own.
            nn.init.kaiming_uniform_(module.weight, a=math.sqrt(5), generator=generator)
            if module.bias is not None:
                bound = 1 / math.sqrt(module.weight[0].numel())
                nn.init.uniform_(module.bias, -bound, bound, generator=generator)
    for head, gain in ((agent.policy, 0.01), (agent.value, 1.0)):
        nn.init.orthogonal_(head.weight, gain, generator=generator)
        nn.init.zeros_(head.bias)
    return lay_out_channels_last(agent)


def lay_out_channels_last(agent: Agent) -> Agent:
    """The agent with its convolutions' weights channels-last, which CPUs run twice as fast as the default."""
    for parameter in agent.parameters():
        if parameter.dim() == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return agent
