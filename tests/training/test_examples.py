"""The examples that load other people's weights, run as a user would run them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from gapfloor.policies.load import PolicySource

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def in_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for module in ("cleanrl_policy", "torch_policy"):
        sys.modules.pop(module, None)


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv0, self.conv1 = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv1(torch.relu(self.conv0(torch.relu(x))))


class Sequence(nn.Module):
    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, width, 3, padding=1)
        self.res_block0, self.res_block1 = Residual(width), Residual(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.res_block1(self.res_block0(nn.functional.max_pool2d(self.conv(x), 3, 2, 1)))


class CleanRLShaped(nn.Module):
    """A network whose tensors have the names and shapes of CleanRL's ppo_procgen agent."""

    def __init__(self) -> None:
        super().__init__()
        sequences = [Sequence(i, o) for i, o in ((3, 16), (16, 32), (32, 32))]
        self.network = nn.Sequential(*sequences, nn.Flatten(), nn.ReLU(), nn.Linear(2048, 256), nn.ReLU())
        self.actor, self.critic = nn.Linear(256, 15), nn.Linear(256, 1)

    def logits(self, observations: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            images = torch.from_numpy(observations).permute(0, 3, 1, 2) / 255.0
            return self.actor(self.network(images)).numpy()


def frames() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (8, 64, 64, 3), dtype=np.uint8)


def test_a_cleanrl_state_dict_plays_as_it_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    trained = CleanRLShaped()
    torch.save(trained.state_dict(), tmp_path / "agent.pt")
    monkeypatch.setenv("CLEANRL_WEIGHTS", str(tmp_path / "agent.pt"))
    policy = PolicySource("cleanrl_policy:factory").load()
    np.testing.assert_allclose(policy.logits(frames()), trained.logits(frames()), atol=1e-5)  # type: ignore[call-arg]


def test_a_plain_torch_state_dict_plays_as_it_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch_policy

    torch.manual_seed(0)
    network = torch_policy.Network()
    torch.save(network.state_dict(), tmp_path / "network.pt")
    monkeypatch.setenv("TORCH_WEIGHTS", str(tmp_path / "network.pt"))
    policy = PolicySource("torch_policy:factory").load()
    with torch.no_grad():
        expected = network(torch.from_numpy(frames()).permute(0, 3, 1, 2) / 255.0).numpy()
    np.testing.assert_allclose(policy.logits(frames()), expected, atol=1e-6)  # type: ignore[call-arg]
