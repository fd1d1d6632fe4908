"""Checkpoints: named tensors, a header, a hash that notices every change, and no code on loading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from gapfloor.errors import PolicyError
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import (
    hash_contents,
    load_agent,
    read_checkpoint,
    read_header,
    write_checkpoint,
)

HEADER: dict[str, Any] = {
    "game": "starpilot", "mode": "easy", "levels": "0:200", "encoder": "impoola", "seed": 1, "steps": 64,
    "observation_shape": [64, 64, 3], "n_actions": 15,
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    write_checkpoint(tmp_path / "checkpoint.safetensors", agent, HEADER)
    return tmp_path / "checkpoint.safetensors"


def rewrite(path: Path, tensors: dict[str, torch.Tensor], **changes: Any) -> None:
    header = {**read_header(path), **changes}
    save_file(tensors, path, metadata={"gapfloor": json.dumps(header)})


def test_weights_come_back_as_they_were(path: Path) -> None:
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    loaded = load_agent(read_checkpoint(path, game="starpilot", encoder="impoola"))
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in agent.state_dict().items())
    images = torch.randint(0, 256, (4, 64, 64, 3), dtype=torch.uint8)
    assert torch.equal(agent(images)[0], loaded(images)[0])


def test_tensors_are_named_by_their_part(path: Path) -> None:
    with safe_open(path, framework="pt") as file:
        assert {name.split(".")[0] for name in file.keys()} == {"encoder", "policy", "value"}  # noqa: SIM118


@pytest.mark.parametrize(
    ("kind", "asked", "found"), [("game", "heist", "starpilot"), ("encoder", "fpn", "impoola")]
)
def test_another_game_or_encoder_is_refused_with_both_names(
    path: Path, kind: str, asked: str, found: str
) -> None:
    with pytest.raises(PolicyError, match=f"the {kind} {found}, not {asked}"):
        read_checkpoint(path, **{kind: asked})


def test_weights_of_another_encoder_under_this_name_are_refused(path: Path) -> None:
    other = make_agent("impala", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    tensors = {name: tensor.contiguous() for name, tensor in other.state_dict().items()}
    rewrite(path, tensors, content_hash=hash_contents(tensors, "impoola"))
    with pytest.raises(
        PolicyError, match=r"does not hold the weights of an impoola agent: encoder\.projection"
    ):
        load_agent(read_checkpoint(path))


def test_a_changed_weight_is_noticed(path: Path) -> None:
    tensors = load_file(path)
    tensors["policy.bias"][3] += 1e-3
    rewrite(path, tensors)
    with pytest.raises(PolicyError, match="does not match the hash"):
        read_checkpoint(path)


def test_the_hash_covers_names_values_and_the_encoder(path: Path) -> None:
    tensors = load_file(path)
    base = hash_contents(tensors, "impoola")
    renamed = {("x" + name if name == "value.bias" else name): tensor for name, tensor in tensors.items()}
    assert len({base, hash_contents(tensors, "impala"), hash_contents(renamed, "impoola")}) == 3
    strided = {
        name: t.contiguous(memory_format=torch.channels_last) if t.dim() == 4 else t
        for name, t in tensors.items()
    }
    assert hash_contents(strided, "impoola") == base


def test_equal_agents_give_equal_files(path: Path, tmp_path: Path) -> None:
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    write_checkpoint(tmp_path / "again.safetensors", agent, dict(reversed(HEADER.items())))
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_foreign_files_are_refused_in_one_sentence(path: Path, tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "pickle.safetensors")
    save_file({"a": torch.zeros(1)}, tmp_path / "plain.safetensors")
    tensors = load_file(path)
    header = {k: v for k, v in read_header(path).items() if k != "levels"}
    save_file(tensors, tmp_path / "lacking.safetensors", metadata={"gapfloor": json.dumps(header)})
    for name, message in (
        ("pickle", "is not a safetensors file"),
        ("plain", "has no gapfloor header"),
        ("lacking", "lacks levels"),
        ("missing", "is not a file"),
    ):
        with pytest.raises(PolicyError, match=message):
            read_checkpoint(tmp_path / f"{name}.safetensors")
