"""Exported networks over real-valued actions: the line states what their outputs are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import gapfloor
from gapfloor.actions.distributions import Deterministic, Gaussian, SquashedGaussian
from gapfloor.errors import GapfloorError
from gapfloor.policies.load import PolicySource

SEEN = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


class TwoHeads(torch.nn.Module):
    """A mean and a second output."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.mean(rows), self.other(rows).exp()


@pytest.fixture(scope="module")
def network() -> TwoHeads:
    torch.manual_seed(0)
    return TwoHeads().eval()


@pytest.fixture(scope="module")
def actor(network: TwoHeads, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The line of a file with the weights of the network."""
    path = tmp_path_factory.mktemp("stated") / "actor.pt"
    torch.save(network.state_dict(), path)
    return f"statedict:{path},net={TwoHeads.__module__}:TwoHeads"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ("distribution=gaussian,deviation=1", Gaussian),
        ("distribution=squashed,deviation=1", SquashedGaussian),
        ("distribution=action,output=0", Deterministic),
    ],
)
def test_a_stated_distribution_has_the_networks_outputs(
    options: str, kind: type, actor: str, network: TwoHeads
) -> None:
    found = PolicySource(f"{actor},{options}").load().logits(SEEN)
    assert type(found) is kind
    with torch.no_grad():
        first, second = (each.numpy() for each in network(torch.as_tensor(SEEN)))
    expected = [first] if kind is Deterministic else [first, second]
    assert found.parameters == pytest.approx(np.concatenate(expected, axis=1), abs=1e-6)


def test_the_logarithm_of_a_deviation_is_another_policy(actor: str) -> None:
    plain, logarithm = (
        PolicySource(f"{actor},distribution=gaussian,{option}=1").load()
        for option in ("deviation", "log_deviation")
    )
    assert plain.fingerprint != logarithm.fingerprint
    deviation = plain.logits(SEEN).deviation
    assert logarithm.logits(SEEN).deviation == pytest.approx(np.exp(deviation))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("distribution=gaussian", "needs deviation=1 or log_deviation=1"),
        ("distribution=gausian,deviation=1", "did you mean gaussian"),
        ("deviation=1", "needs distribution="),
        ("distribution=action,deviation=1", "needs no second output"),
    ],
)
def test_a_line_that_states_too_little_or_too_much_is_refused(options: str, words: str, actor: str) -> None:
    with pytest.raises(GapfloorError, match=words):
        PolicySource(f"{actor},{options}").load()


def test_an_output_that_does_not_exist_is_named(actor: str) -> None:
    policy = PolicySource(f"{actor},distribution=gaussian,deviation=7").load()
    with pytest.raises(GapfloorError, match="no output=7"):
        policy.logits(SEEN)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of two outputs for Pendulum's three observations and one action, as ONNX."""
    onnx = pytest.importorskip("onnx")
    helper, numbers = onnx.helper, onnx.TensorProto.FLOAT
    rng = np.random.default_rng(1)
    weights = {"w0": rng.normal(size=(3, 1)), "w1": 0.1 * rng.normal(size=(3, 1))}
    tensors = [
        onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["seen", f"w{at}"], [name]) for at, name in enumerate(("mean", "log"))
    ]
    shown = [helper.make_tensor_value_info(name, numbers, ["n", 1]) for name in ("mean", "log")]
    taken = [helper.make_tensor_value_info("seen", numbers, ["n", 3])]
    model = helper.make_model(
        helper.make_graph(nodes, "actor", taken, shown, tensors), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    path = tmp_path_factory.mktemp("stated") / "actor.onnx"
    onnx.save(model, path)
    return path


def test_stated_outputs_of_an_onnx_file_play_under_both_rules(graph: Path) -> None:
    line = f"onnx:{graph},distribution=squashed,log_deviation=1"
    found = PolicySource(line).load().logits(SEEN)
    assert type(found) is SquashedGaussian
    result = gapfloor.evaluate(
        line,
        game="gym:Pendulum-v1",
        rules="sampled,greedy",
        train="none",
        draws=0,
        episodes=16,
        workers=1,
        progress=False,
    )
    rows = {row.rule or row.reference: row for row in result.returns}
    assert set(rows) == {"uniform", "sampled", "greedy"}
    assert rows["sampled"].mean != rows["greedy"].mean
    assert rows["greedy"].n_episodes == 16
