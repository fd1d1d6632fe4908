"""Checkpoints: named tensors, a header, a hash that notices every change, and no code on loading."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from gapfloor.errors import PolicyError
from gapfloor.training.agent import make_agent
from gapfloor.training.checkpoint import (
    hash_contents,
    hash_header,
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
    """Write other tensors or fields, with the header's hash made to fit."""
    header = {**read_header(path), **changes}
    header["header_hash"] = hash_header(header)
    save_file(tensors, path, metadata={"gapfloor": json.dumps(header)})


def edit(path: Path, **changes: Any) -> None:
    """Change fields of the header as an editor would, and nothing else."""
    header = {**read_header(path), **changes}
    save_file(load_file(path), path, metadata={"gapfloor": json.dumps(header)})


def test_weights_come_back_as_they_were(path: Path) -> None:
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    loaded = load_agent(read_checkpoint(path))
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in agent.state_dict().items())
    images = torch.randint(0, 256, (4, 64, 64, 3), dtype=torch.uint8)
    assert torch.equal(agent(images)[0], loaded(images)[0])


def test_tensors_are_named_by_their_part(path: Path) -> None:
    with safe_open(path, framework="pt") as file:
        assert {name.split(".")[0] for name in file.keys()} == {"encoder", "policy", "value"}  # noqa: SIM118


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
        ("missing", "There is no file"),
    ):
        with pytest.raises(PolicyError, match=message):
            read_checkpoint(tmp_path / f"{name}.safetensors")


@pytest.mark.parametrize("changes", [{"seed": 2}, {"levels": "0:500"}, {"steps": 128}, {"note": "mine"}])
def test_an_edited_header_is_noticed(path: Path, changes: dict[str, Any]) -> None:
    edit(path, **changes)
    for read in (read_header, read_checkpoint):
        with pytest.raises(PolicyError, match="does not match its hash: a label"):
            read(path)


def test_the_identity_of_a_policy_does_not_depend_on_its_header(path: Path, tmp_path: Path) -> None:
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    other = write_checkpoint(tmp_path / "other.safetensors", agent, {**HEADER, "seed": 2, "levels": "0:500"})
    assert other == read_header(path)["content_hash"]


def test_checkpoints_of_version_0_1_have_no_header_hash_and_are_read() -> None:
    shipped = sorted((Path(__file__).parents[2] / "agents").glob("*/checkpoint.safetensors"))
    headers = [read_checkpoint(each).header for each in shipped]
    assert any("header_hash" not in header for header in headers)


ODD_VALUES: list[tuple[str, Any]] = [
    ("game", 3), ("game", ""), ("mode", None), ("levels", "many"), ("levels", [0, 200]), ("encoder", {}),
    ("encoder", "a\0b"), ("seed", -1), ("seed", "1"), ("seed", True), ("steps", 1.5), ("steps", 2**70),
    ("observation_shape", []), ("observation_shape", [64, 64]), ("observation_shape", [64, 64, -3]),
    ("observation_shape", [10**9, 10**9, 3]), ("observation_shape", "64x64"), ("n_actions", 0),
    ("n_actions", 10**12), ("n_actions", float("nan")), ("content_hash", "abc"), ("budget", 8), ("blind", "yes"),
    ("iteration", "all"), ("header_hash", 7),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), ODD_VALUES)
def test_an_odd_value_in_a_header_is_one_sentence(path: Path, name: str, value: Any) -> None:
    edit(path, **{name: value})
    with pytest.raises(
        PolicyError, match=rf"gives {name} as .*, which is not|does not match its hash"
    ) as caught:
        read_checkpoint(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, "null", "{", '{"format": 1}'])
def test_a_header_that_is_not_one_is_one_sentence(path: Path, text: str) -> None:
    save_file(load_file(path), path, metadata={"gapfloor": text})
    with pytest.raises(PolicyError, match="header"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "kind", [torch.bfloat16, torch.int8, torch.bool, torch.complex64, torch.float8_e4m3fn]
)
def test_weights_of_other_types_are_refused_by_name(path: Path, kind: torch.dtype) -> None:
    tensors = load_file(path)
    tensors["policy.bias"] = torch.zeros(15, dtype=torch.float32).to(kind)
    rewrite(path, tensors)
    with pytest.raises(
        PolicyError, match=r"stores policy\.bias as \w+: the weights of a checkpoint are floats"
    ):
        read_checkpoint(path)


def test_a_header_that_claims_a_huge_network_takes_no_memory(path: Path) -> None:
    rewrite(path, load_file(path), observation_shape=[65_536, 65_536, 3], encoder="impala", n_actions=65_536,
            content_hash=hash_contents(load_file(path), "impala"))  # fmt: skip
    with pytest.raises(PolicyError, match="does not hold the weights of an impala agent"):
        load_agent(read_checkpoint(path))


def test_an_image_that_the_encoder_cannot_pool_is_one_sentence(path: Path) -> None:
    rewrite(path, load_file(path), observation_shape=[30, 30, 3], encoder="fpn",
            content_hash=hash_contents(load_file(path), "fpn"))  # fmt: skip
    with pytest.raises(PolicyError, match="do not pool evenly"):
        load_agent(read_checkpoint(path))


@settings(max_examples=100, deadline=None)
@given(places=st.lists(st.tuples(st.integers(0, 4_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_checkpoint_is_read_or_refused(
    small_checkpoint: bytes, tmp_path_factory: pytest.TempPathFactory, places: list[tuple[int, int]]
) -> None:
    content = bytearray(small_checkpoint)
    for place, byte in places:
        content[place] = byte
    damaged = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    damaged.write_bytes(content)
    with contextlib.suppress(PolicyError):
        load_agent(read_checkpoint(damaged))


@pytest.fixture(scope="module")
def small_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "checkpoint.safetensors"
    write_checkpoint(path, make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1), HEADER)
    return path.read_bytes()
