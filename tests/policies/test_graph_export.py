"""Torch networks of users as ONNX graphs: the same function where a graph is used, torch with a note where not."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from gapfloor import evaluate
from gapfloor.policies.formats.cleanrl import policy_of_agent
from gapfloor.policies.formats.module import policy_of_module
from gapfloor.policies.graph import GraphPolicy
from gapfloor.policies.graph_export import TOLERANCE
from gapfloor.policies.notes import PolicyWarning
from gapfloor.records.store import Store

FRAMES = np.random.default_rng(0).integers(0, 256, (6, 64, 64, 3), dtype=np.uint8)
SMALL: dict[str, Any] = {
    "episodes": 8, "slots": 4, "draws": (0,), "train": "0:8", "test": "100:108", "workers": 1, "progress": False,
}  # fmt: skip


class Network(nn.Module):
    """An actor-critic for frames in [0, 1] with their channels first."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 8, 4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(32), nn.ReLU()
        )
        self.actor, self.critic = nn.Linear(32, 15), nn.Linear(32, 1)
        self(torch.zeros(1, 3, 64, 64))
        with torch.no_grad():
            self.actor.weight.mul_(8)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x / 255)
        return self.actor(hidden), self.critic(hidden)

    def get_action_and_value(self, x: torch.Tensor, action: torch.Tensor | None = None) -> Any:
        logits, value = self(x.permute(0, 3, 1, 2))
        spread = torch.distributions.Categorical(logits=logits)
        action = spread.sample() if action is None else action
        return action, spread.log_prob(action), spread.entropy(), value


class Branching(Network):
    """Decides by what it sees, which a trace cannot record."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, value = super().forward(x)
        return (logits if x.sum() > 0 else 1 - logits), value


class BranchingLate(Network):
    """Decides by something that none of the observations has on which a graph is compared with torch."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, value = super().forward(x)
        return (-logits if x.float().mean() > 250 else logits), value


class FixedRows(Network):
    """Works with six rows only."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, value = super().forward(x)
        return logits.reshape(int(x.shape[0]), -1), value


class WithoutOperator(Network):
    """Uses a function that ONNX does not have."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        logits, value = super().forward(x)
        return logits + torch.special.i0e(logits), value


def module_policy(network: nn.Module) -> Any:
    policy = policy_of_module(network, name="mine", device="cpu")
    policy.logits(FRAMES)  # decides how images are given and where the logits are
    return policy


@pytest.mark.parametrize("kind", ["module", "agent"])
def test_a_graph_computes_what_torch_computes_row_by_row(kind: str) -> None:
    policy = module_policy(Network())
    if kind == "agent":
        policy = policy_of_agent(Network(), where="here", name="mine")
    expected, graph = policy.logits(FRAMES), policy.exported(FRAMES)
    assert isinstance(graph, GraphPolicy)
    assert (graph.backend, graph.name, graph.header) == ("onnxruntime", policy.name, policy.header)
    found = graph.logits(FRAMES)
    assert np.abs(found - expected).max() <= TOLERANCE * max(1, np.abs(expected).max())
    for rows in ([0], [5, 2], [3, 3, 1, 0]):
        assert np.array_equal(graph.logits(FRAMES[rows]), found[rows])


def test_a_graph_can_be_sent_to_a_process_that_has_no_torch() -> None:
    graph = module_policy(Network()).exported(FRAMES)
    sent = pickle.dumps(graph)
    assert b"torch" not in sent.replace(graph._graph, b"")
    assert np.array_equal(pickle.loads(sent).logits(FRAMES), graph.logits(FRAMES))


@pytest.mark.parametrize("kind", [Branching, BranchingLate, FixedRows, WithoutOperator])
def test_torch_computes_with_a_note_where_a_graph_would_be_something_else(
    kind: type[nn.Module], capfd: pytest.CaptureFixture[str]
) -> None:
    policy = module_policy(kind())
    policy.name = kind.__name__  # notes are shown once per text
    with pytest.warns(PolicyWarning, match=f"{kind.__name__} cannot run in ONNX Runtime, so torch computes"):
        assert policy.exported(FRAMES) is policy
    assert capfd.readouterr().out == "", "torch's exporter prints its graph, which would break --json"


def cells_of(store: Path) -> dict[str, Any]:
    cells = [cell for cell in Store(store).cells() if not cell.is_reference]
    return {cell.path.name: cell.manifest.content["backend"] for cell in cells}


def test_users_networks_run_in_onnx_runtime_unless_torch_is_asked_for_or_filled_the_store(
    tmp_path: Path,
) -> None:
    returns = {}
    for backend in (None, "torch"):
        store = tmp_path / str(backend)
        evaluate(Network(), game="starpilot", rules="sampled,greedy", store=store, backend=backend, **SMALL)
        assert set(cells_of(store).values()) == {backend or "onnxruntime"}
        returns[backend] = Store(store).episodes().column("episode_return").to_numpy()
    assert np.array_equal(returns[None], returns["torch"])
    before = cells_of(tmp_path / "torch")
    evaluate(Network(), game="starpilot", rules="sampled,greedy", store=tmp_path / "torch", **SMALL)
    assert cells_of(tmp_path / "torch") == before


def test_one_network_can_be_measured_in_two_games_of_a_store(tmp_path: Path) -> None:
    for game in ("starpilot", "fruitbot"):
        evaluate("random-weights:impoola:1", game=game, rules="greedy", store=tmp_path, **SMALL)
    assert len(cells_of(tmp_path)) == 4
