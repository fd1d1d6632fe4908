"""A checkpoint as a policy: logits, hash, a fixed batch shape, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from gapfloor.errors import GapfloorError, PolicyError, UsageError
from gapfloor.policies.checkpoint import CheckpointPolicy, load_network
from gapfloor.policies.policy import Policy
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import FORMAT, hash_contents, hash_header, read_header, write_checkpoint

HEADER = {
    "game": "miner", "mode": "easy", "levels": "0:200", "encoder": "fpn", "seed": 4, "steps": 4096, "budget": "8M",
    "observation_shape": [64, 64, 3], "n_actions": 15,
}  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "checkpoint.safetensors"
    write_checkpoint(path, make_agent("fpn", observation_shape=(64, 64, 3), n_actions=15, seed=4), HEADER)
    return path


@pytest.fixture(scope="module")
def policy(path: Path) -> CheckpointPolicy:
    return load_network(path, backend="torch")


def frames(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, 64, 64, 3), dtype=np.uint8)


def test_logits_are_the_agents(policy: CheckpointPolicy) -> None:
    agent = make_agent("fpn", observation_shape=(64, 64, 3), n_actions=15, seed=4)
    observations = frames(16)
    logits = policy.logits(observations)
    assert isinstance(policy, Policy)
    assert (logits.shape, logits.dtype) == ((16, 15), np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(logits, agent(torch.from_numpy(observations))[0].numpy(), atol=1e-6)
    assert policy.features(observations).shape == (16, 256)


def test_a_rows_logits_do_not_depend_on_its_companions(policy: CheckpointPolicy) -> None:
    together = policy.logits(frames(16))
    padded = np.zeros((16, 64, 64, 3), np.uint8)
    padded[5] = frames(16)[5]
    assert np.array_equal(policy.logits(padded)[5], together[5])


def test_views_that_must_not_be_written_are_read(policy: CheckpointPolicy) -> None:
    observations = frames(16)
    frozen = observations.copy()
    frozen.flags.writeable = False
    assert np.array_equal(policy.logits(frozen), policy.logits(observations))


def test_the_hash_is_that_of_tensors_and_encoder(policy: CheckpointPolicy) -> None:
    agent = make_agent("fpn", observation_shape=(64, 64, 3), n_actions=15, seed=4)
    assert policy.fingerprint == hash_contents(agent.state_dict(), "fpn")
    assert policy.name == "miner-easy-fpn-8M-s4"
    assert policy.header["game"] == "miner"


def test_inference_leaves_torchs_threads_as_they_were(policy: CheckpointPolicy) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        policy.logits(frames(4))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_what_does_not_fit_is_refused(path: Path, policy: CheckpointPolicy) -> None:
    with pytest.raises(UsageError, match="torch cannot use the device 'tpu'"):
        load_network(path, device="tpu", backend="torch")
    with pytest.raises(PolicyError, match="reads uint8 observations of shape"):
        policy.logits(np.zeros((1, 64, 64, 3), np.float32))  # type: ignore[arg-type]


def write_safetensors(path: Path, tensors: dict[str, torch.Tensor], **changes: object) -> Path:
    """A checkpoint with these tensors, whose hash matches and whose header has changes."""
    kept = {name: tensor for name, tensor in tensors.items() if tensor.dtype != torch.bfloat16}
    header = {"format": FORMAT, **HEADER, "content_hash": hash_contents(kept, "fpn"), **changes}
    path.write_bytes(save(tensors, metadata={"gapfloor": json.dumps(header)}))
    return path


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    agent = make_agent("fpn", observation_shape=(64, 64, 3), n_actions=15, seed=4)
    return {name: tensor.contiguous() for name, tensor in agent.state_dict().items()}


@pytest.mark.parametrize(
    "agent", sorted(Path("agents").glob("*/checkpoint.safetensors")), ids=lambda path: path.parent.name
)
def test_every_shipped_agent_loads(agent: Path) -> None:
    assert load_network(agent, backend="torch").fingerprint == read_header(agent)["content_hash"]


def test_an_encoder_that_does_not_exist_is_refused(weights: dict[str, torch.Tensor], tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "odd.safetensors", weights, encoder="fpnn")
    with pytest.raises(GapfloorError):
        load_network(path, backend="torch")


def test_a_header_with_a_hash_of_its_own_cannot_be_edited(
    weights: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    whole = {"format": FORMAT, **HEADER, "content_hash": hash_contents(weights, "fpn")}
    path = tmp_path / "signed.safetensors"
    write_safetensors(path, weights, header_hash=hash_header(whole))
    assert load_network(path, backend="torch").fingerprint == whole["content_hash"]
    write_safetensors(path, weights, header_hash=hash_header(whole), levels="0:500")
    with pytest.raises(PolicyError, match=r"header of .* does not match its hash: a label .* was changed"):
        load_network(path, backend="torch")


def test_a_name_that_occurs_twice_in_a_header_is_refused(
    weights: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    path = write_safetensors(tmp_path / "twice.safetensors", weights)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip()[:-1] + b',"__metadata__":{"gapfloor":"{}"}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])
    with pytest.raises(PolicyError, match="is not a safetensors file, or it is damaged"):
        load_network(path, backend="torch")
