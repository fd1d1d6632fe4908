"""Our agents in ONNX Runtime: the function of the torch network, rows that do not depend on each other, no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from command_line import run_python
from gapfloor.errors import PolicyError
from gapfloor.policies.checkpoint import CheckpointPolicy, load_network
from gapfloor.policies.encoder_graphs import agent_graph
from gapfloor.policies.graph import GraphPolicy
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import hash_contents, load_agent, read_checkpoint, write_checkpoint
from gapfloor.training.encoders import encoder_names

AGENTS = sorted(Path("agents").glob("*/checkpoint.safetensors"))
#: The heads of a new agent are tiny, so its logits are raised to the size of a trained agent's.
SCALE = 50


def both(encoder: str, *, shape: tuple[int, ...] = (64, 64, 3), blind: bool = False) -> tuple[Any, Any]:
    """A new agent in torch and in ONNX Runtime."""
    agent = make_agent(encoder, observation_shape=shape, n_actions=15, seed=3, is_blind=blind)
    with torch.no_grad():
        agent.policy.weight.mul_(SCALE)
        agent.policy.bias.copy_(torch.linspace(-1, 1, 15))
    header = {
        "encoder": encoder, "observation_shape": shape, "n_actions": 15, "blind": blind,
        "content_hash": hash_contents(agent.state_dict(), encoder),
    }  # fmt: skip
    arrays = {name: tensor.detach().numpy() for name, tensor in agent.state_dict().items()}
    content = agent_graph(arrays, header, path=Path("new"))
    graph = GraphPolicy(content, name="new", header=header, fingerprint="")
    return CheckpointPolicy(agent, name="new", header=header, device="cpu"), graph


def frames(n: int, shape: tuple[int, ...] = (64, 64, 3), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, *shape), dtype=np.uint8)


@pytest.mark.parametrize("blind", [False, True], ids=["sees", "blind"])
@pytest.mark.parametrize("encoder", encoder_names())
def test_the_graph_of_every_encoder_is_the_network_up_to_rounding(encoder: str, blind: bool) -> None:
    network, graph = both(encoder, blind=blind)
    expected, found = network.logits(frames(16)), graph.logits(frames(16))
    assert (found.shape, found.dtype) == ((16, 15), np.float32)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("encoder", encoder_names())
def test_images_of_other_sizes_are_the_same_function_too(encoder: str) -> None:
    shape = (32, 96, 4) if encoder == "fpn" else (37, 50, 1)
    network, graph = both(encoder, shape=shape)
    np.testing.assert_allclose(
        graph.logits(frames(3, shape)), network.logits(frames(3, shape)), rtol=0, atol=2e-6
    )


@pytest.mark.parametrize("blind", [False, True], ids=["sees", "blind"])
@pytest.mark.parametrize("encoder", encoder_names())
def test_a_rows_logits_depend_neither_on_the_number_of_rows_nor_on_its_companions(
    encoder: str, blind: bool
) -> None:
    _, graph = both(encoder, blind=blind)
    observations = frames(33)
    together = graph.logits(observations)
    for n in (*range(1, 18), 31, 32):
        rows = np.random.default_rng(n).permutation(33)[:n]
        assert np.array_equal(graph.logits(observations[rows]), together[rows]), n


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.parent.name)
def test_every_shipped_agent_prefers_the_same_actions_in_both_backends(path: Path) -> None:
    graph, network = (load_network(path, backend=backend) for backend in ("onnxruntime", "torch"))
    assert isinstance(graph, GraphPolicy)
    assert isinstance(network, CheckpointPolicy)
    assert (graph.fingerprint, graph.name) == (network.fingerprint, network.name)
    np.testing.assert_allclose(graph.logits(frames(16)), network.logits(frames(16)), rtol=0, atol=1e-5)


def test_a_process_that_plays_a_checkpoint_in_onnx_runtime_never_imports_torch() -> None:
    code = (
        "import sys, numpy as np\n"
        "from gapfloor.policies.load import PolicySource\n"
        f"policy = PolicySource({str(AGENTS[0].resolve())!r}).load()\n"
        "policy.logits(np.zeros((2, 64, 64, 3), np.uint8))\n"
        "print(policy.backend, 'torch' in sys.modules)"
    )
    assert run_python(code).out.split() == ["onnxruntime", "False"]


def test_weights_of_another_encoder_are_refused_in_the_words_of_torch(tmp_path: Path) -> None:
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    header = {
        "game": "miner", "mode": "easy", "levels": "0:200", "encoder": "impala", "seed": 1, "steps": 1,
        "observation_shape": [64, 64, 3], "n_actions": 15,
    }  # fmt: skip
    path = tmp_path / "checkpoint.safetensors"
    write_checkpoint(path, agent, header)
    messages = []
    for load in (
        lambda: load_agent(read_checkpoint(path)),
        lambda: load_network(path, backend="onnxruntime"),
    ):
        with pytest.raises(PolicyError) as refused:
            load()
        messages.append(str(refused.value))
    assert messages[0] == messages[1]
    assert "encoder.projection.weight has the shape (256, 32), not (256, 2048)" in messages[0]


def test_a_tensor_that_no_layer_reads_is_refused() -> None:
    network, _ = both("impala")
    arrays = {name: tensor.numpy() for name, tensor in network.network.state_dict().items()}
    with pytest.raises(PolicyError, match="extra has the shape"):
        agent_graph({**arrays, "extra": np.zeros(3)}, network.header, path=Path("new"))


def test_frames_of_another_kind_are_refused() -> None:
    _, graph = both("impoola")
    with pytest.raises(PolicyError, match="reads uint8 observations of shape"):
        graph.logits(np.zeros((1, 64, 64, 3), np.float32))
