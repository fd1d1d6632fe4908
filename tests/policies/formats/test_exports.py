"""ONNX: exports of one network agree with the library, and say what they cannot read."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from gapfloor.errors import MissingExtraError, PolicyError, UsageError
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import Policy, StatefulPolicy


class ActorOnly(torch.nn.Module):
    """An SB3 policy's way from a preprocessed image to logits and a value."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(), policy.mlp_extractor.policy_net, policy.action_net
        )
        self.value = torch.nn.Sequential(torch.nn.Flatten(), policy.mlp_extractor.value_net, policy.value_net)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.value(images), self.layers(images)


def load(name: str) -> Any:
    return PolicySource(name).load()


def export_onnx(module: torch.nn.Module, example: torch.Tensor, path: Path, *, batch: Any = "n") -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, (example,), str(path), dynamo=False, input_names=["x"], output_names=["value", "logits"],
            dynamic_axes={"x": {0: batch}} if batch else None,
        )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def exports(ppo: Any, folder: Path) -> dict[str, Path]:
    module = ActorOnly(ppo.model.policy).eval()
    example = torch.zeros(1, 3, 7, 7)
    return {
        "onnx": export_onnx(module, example, folder / "ppo.onnx"),
        "single": export_onnx(module, example, folder / "single.onnx", batch=None),
    }


@pytest.fixture(scope="module")
def frames(ppo: Any) -> np.ndarray:
    rng = np.random.default_rng(0)
    ppo.environments.reset()
    seen = [ppo.raw.seen]
    for _ in range(7):
        ppo.environments.step(rng.integers(0, 7, 3))
        seen.append(ppo.raw.seen)
    return np.concatenate(seen)


def test_exports_of_one_network_agree_with_the_library(
    ppo: Any, exports: dict[str, Path], frames: np.ndarray
) -> None:
    theirs = load(f"sb3:{ppo.path}").logits(frames)
    for name in (
        f"onnx:{exports['onnx']},scale=255,output=1",  # the graph itself says that channels come first
        f"onnx:{exports['single']},scale=255,output=1",
    ):
        policy = load(name)
        assert isinstance(policy, Policy)
        assert not isinstance(policy, StatefulPolicy)
        ours = policy.logits(frames)
        assert ours.dtype == np.float32
        # The library's logits are normalised, an export's are not: compare distributions.
        ours = ours - np.log(np.exp(ours).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_a_rows_logits_do_not_depend_on_its_companions(exports: dict[str, Path], frames: np.ndarray) -> None:
    alone = np.zeros_like(frames)
    alone[5] = frames[5]
    policy = load(f"onnx:{exports['onnx']},scale=255,output=1")
    assert np.array_equal(policy.logits(frames)[5], policy.logits(alone)[5])


def test_the_same_observations_give_the_same_logits_at_every_call(
    exports: dict[str, Path], frames: np.ndarray
) -> None:
    policy = load(f"onnx:{exports['onnx']},scale=255")
    first = policy.logits(frames)
    assert all(np.array_equal(policy.logits(frames), first) for _ in range(4))


def test_the_hash_is_that_of_the_file_and_of_what_is_done_to_observations(exports: dict[str, Path]) -> None:
    hashes = [
        load(f"onnx:{exports['onnx']}{options}").fingerprint
        for options in ("", ",scale=255", ",scale=255,output=1")
    ]
    assert len(set(hashes)) == 3
    assert load(f"onnx:{exports['onnx']}").fingerprint == hashes[0]
    assert load(f"onnx:{exports['single']}").fingerprint != hashes[0]


def test_dicts_of_observations_reach_inputs_of_the_same_name(tmp_path: Path) -> None:
    nodes = [
        onnx.helper.make_node("Add", ["b", "b"], ["twice"]),
        onnx.helper.make_node("Concat", ["a", "twice"], ["logits"], axis=1),
    ]
    value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", None])  # noqa: E731
    graph = onnx.helper.make_graph(nodes, "both", [value("a"), value("b")], [value("logits")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "both.onnx"))
    seen = {"a": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.ones((3, 1), dtype=np.float32)}
    expected = np.concatenate([seen["a"], 2 * seen["b"]], axis=1)
    assert np.array_equal(load(f"onnx:{tmp_path / 'both.onnx'}").logits(seen), expected)
    with pytest.raises(PolicyError, match="reads an input b, but the observations are a"):
        load(f"onnx:{tmp_path / 'both.onnx'}").logits({"a": seen["a"]})


def test_what_cannot_be_read_is_refused_in_words(exports: dict[str, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"nothing of the kind")
    with pytest.raises(PolicyError, match="does not load as ONNX"):
        load(f"onnx:{broken}")
    with pytest.raises(PolicyError, match=r"reads x of shape \['n', 3, 7, 7\], not \[2, 8, 8, 3\]"):
        load(f"onnx:{exports['onnx']}").logits(np.zeros((2, 8, 8, 3), dtype=np.uint8))
    with pytest.raises(PolicyError, match="has 2 outputs, so there is no output=5"):
        load(f"onnx:{exports['onnx']},output=5").logits(np.zeros((2, 3, 7, 7), dtype=np.uint8))
    with pytest.raises(UsageError, match="scale=none is not a number above 0"):
        load(f"onnx:{exports['onnx']},scale=none")
    with pytest.raises(UsageError, match="cannot use the device 'tpu'"):
        PolicySource(f"onnx:{exports['onnx']}", device="tpu").load()
    assert load(str(exports["onnx"])).fingerprint == load(f"onnx:{exports['onnx']}").fingerprint


@pytest.mark.parametrize(("kind", "library"), [("onnx", "onnxruntime"), ("statedict", "torch")])
def test_a_missing_library_is_named_with_the_extra(
    kind: str, library: str, exports: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf'needs {library}: pip install "gapfloor\[loaders\]"'):
        load(f"{kind}:{exports['onnx']}")
