"""Weights with a class that the user names, as people save them: bare, in a container, with a wrapper's prefix."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from gapfloor.errors import MissingExtraError, PolicyError, UsageError
from gapfloor.policies import notes
from gapfloor.policies.backends import require_torch
from gapfloor.policies.formats.spec import FORMATS
from gapfloor.policies.load import PolicySource
from gapfloor.policies.notes import PolicyWarning

NETWORKS = """
import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, n_inputs, n_actions, hidden=8, activation="tanh"):
        super().__init__()
        act = {"tanh": nn.Tanh, "relu": nn.ReLU}[activation]
        self.body = nn.Sequential(nn.Linear(n_inputs, hidden), act())
        self.actor, self.critic = nn.Linear(hidden, n_actions), nn.Linear(hidden, 1)

    def forward(self, x):
        features = self.body(x)
        return self.actor(features), self.critic(features)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 62 * 62, 15))

    def forward(self, x):
        return self.net(x / 255)


def small_actor(n_actions):
    return Actor(4, n_actions)


class NotAModule:
    pass


class ProcgenAgent(nn.Module):
    def __init__(self, envs):
        super().__init__()
        height, width, channels = envs.single_observation_space.shape
        self.network = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten())
        self.policy_head = nn.Linear(4 * (height - 2) * (width - 2), envs.single_action_space.n)

    def get_action_and_value(self, x, action=None):
        return action, self.policy_head(self.network(x.permute((0, 3, 1, 2)) / 255.0)), None, None
"""

SEEN = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("statedict")
    (folder / "my_networks.py").write_text(NETWORKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        import importlib

        yield importlib.import_module("my_networks")


@pytest.fixture(autouse=True)
def nothing_said_yet() -> Iterator[None]:
    notes._SHOWN.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        yield


def load(line: str) -> Any:
    return PolicySource(line).load()


def expected(actor: Any) -> np.ndarray:
    with torch.no_grad():
        return actor(torch.from_numpy(SEEN))[0].numpy()


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model_state_dict": state, "optimizer": {"lr": 0.1}},
        lambda state: {"model_weights": state, "args": {"seed": 1}},
        lambda state: {"agent": {"network": state}},
        lambda state: {f"module.{name}": each for name, each in state.items()},
        lambda state: {f"_orig_mod.module.{name}": each for name, each in state.items()},
    ],
)
def test_weights_are_found_however_they_were_saved(wrapped: Any, networks: Any) -> None:
    actor = networks.Actor(4, 3)
    torch.save(wrapped(actor.state_dict()), "weights.pt")
    policy = load("statedict:weights.pt,net=my_networks:Actor,args=4,3")
    np.testing.assert_allclose(policy.logits(SEEN), expected(actor), atol=1e-6)


def test_what_is_taken_from_a_container_and_from_a_tuple_is_said(networks: Any) -> None:
    torch.save({"state_dict": networks.Actor(4, 3).state_dict()}, "said.pt")
    with pytest.warns(PolicyWarning) as said:
        load("statedict:said.pt,net=my_networks:Actor,args=4,3").logits(SEEN)
    text = " ".join(str(each.message) for each in said)
    assert "the weights are those of its entry 'state_dict'" in text
    assert "the logits are its output 0" in text


def test_several_state_dicts_are_chosen_from_by_name(networks: Any) -> None:
    one, other = networks.Actor(4, 3), networks.Actor(4, 3)
    torch.save({"actor": one.state_dict(), "target": other.state_dict()}, "two.pt")
    start = "statedict:two.pt,net=my_networks:Actor,args=4,3"
    with pytest.raises(
        PolicyError, match=r"several state_dicts \(actor, target\): choose one with ,weights=NAME"
    ):
        load(start)
    np.testing.assert_allclose(load(f"{start},weights=target").logits(SEEN), expected(other), atol=1e-6)
    with pytest.raises(PolicyError, match="has no state_dict 'critic': its state_dicts are actor, target"):
        load(f"{start},weights=critic")


def test_a_function_that_returns_the_network_serves_as_its_class(networks: Any) -> None:
    actor = networks.Actor(4, 3)
    torch.save(actor.state_dict(), "made.pt")
    policy = load("statedict:made.pt,net=my_networks:small_actor,args=3")
    np.testing.assert_allclose(policy.logits(SEEN), expected(actor), atol=1e-6)
    assert policy.fingerprint == load("statedict:made.pt,net=my_networks:Actor,args=4,3").fingerprint


def test_safetensors_of_another_library_are_weights_too(networks: Any) -> None:
    actor = networks.Actor(4, 3)
    save_file(actor.state_dict(), "other.safetensors")
    np.testing.assert_allclose(
        load("statedict:other.safetensors,net=my_networks:Actor,args=4,3").logits(SEEN),
        expected(actor),
        atol=1e-6,
    )
    with pytest.raises(PolicyError, match=r"statedict:other\.safetensors,net=|no gapfloor header"):
        load("other.safetensors")


def test_arguments_are_given_in_order_or_by_name(networks: Any) -> None:
    torch.save(networks.Actor(4, 3, 5, activation="relu").state_dict(), "five.pt")
    for arguments in (
        "4,3,5,relu",
        '{"n_inputs": 4, "n_actions": 3, "hidden": 5, "activation": "relu"}',
        '[4, 3, 5, "relu"]',
    ):
        assert load(f"statedict:five.pt,net=my_networks:Actor,args={arguments}").logits(SEEN).shape == (3, 3)


def test_images_are_given_as_the_network_reads_them(networks: Any) -> None:
    network = networks.Images()
    torch.save(network.state_dict(), "images.pt")
    seen = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    with torch.no_grad():
        theirs = network(torch.from_numpy(seen).permute(0, 3, 1, 2).float()).numpy()
    for options in ("", ",transpose=yes"):
        ours = load(f"statedict:images.pt,net=my_networks:Images{options}").logits(seen)
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_the_hash_is_that_of_weights_and_code(networks: Any) -> None:
    actor = networks.Actor(4, 3)
    torch.save(actor.state_dict(), "a.pt")
    torch.save({"state_dict": actor.state_dict()}, "b.pt")
    line = ",net=my_networks:Actor,args=4,3"
    first = load(f"statedict:a.pt{line}").fingerprint
    assert load(f"statedict:b.pt{line}").fingerprint == first
    assert load(f"statedict:a.pt{line},scale=2").fingerprint != first
    Path("my_networks.py").write_text(NETWORKS + "\n# another version\n")
    try:
        assert load(f"statedict:a.pt{line}").fingerprint != first
    finally:
        Path("my_networks.py").write_text(NETWORKS)


def test_what_does_not_fit_is_refused_in_words(networks: Any) -> None:
    torch.save(networks.Actor(4, 3).state_dict(), "a.pt")
    with pytest.raises(UsageError, match=r"holds weights only: name the class .*,net=MODULE:CLASS"):
        load("statedict:a.pt")
    with pytest.raises(PolicyError, match=r"Actor cannot be made with args=4: TypeError: .*n_actions"):
        load("statedict:a.pt,net=my_networks:Actor,args=4")
    with pytest.raises(
        PolicyError,
        match=r"real numbers of shape \(3,\) for the weights actor\.bias, and the network needs .*\(5,\)",
    ):
        load("statedict:a.pt,net=my_networks:Actor,args=4,5")
    with pytest.raises(PolicyError, match="my_networks has no class or function 'Acto': did you mean Actor"):
        load("statedict:a.pt,net=my_networks:Acto,args=4,3")
    with pytest.raises(PolicyError, match="NotAModule is not a torch module"):
        load("statedict:a.pt,net=my_networks:NotAModule")
    with pytest.raises(UsageError, match="is not JSON"):
        load("statedict:a.pt,net=my_networks:Actor,args={4}")
    torch.save([1, 2], "list.pt")
    with pytest.raises(PolicyError, match="holds a list, not a state_dict"):
        load("statedict:list.pt,net=my_networks:Actor")


def test_the_head_of_a_cleanrl_agent_may_have_another_name(networks: Any) -> None:
    class Spaces:
        class single_observation_space:
            shape = (64, 64, 3)

        class single_action_space:
            n = 15

    torch.save(networks.ProcgenAgent(Spaces).state_dict(), "procgen.pt")
    policy = load(
        "cleanrl:procgen.pt,agent=my_networks:ProcgenAgent,head=policy_head,observation=64x64x3,actions=15"
    )
    assert policy.logits(np.zeros((2, 64, 64, 3), dtype=np.uint8)).shape == (2, 15)


@pytest.mark.parametrize("name", ["ppo", "recurrent"])
def test_a_bare_model_is_recognised(name: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(name).path
    for options in ("", ",framestack=4"):
        assert load(f"{path}{options}").fingerprint == load(f"sb3:{path}{options}").fingerprint
    with pytest.raises(UsageError, match="Unknown option of sb3: 'scale'"):
        load(f"{path},scale=2")


def test_bare_files_of_torch_are_told_apart_by_what_they_hold(networks: Any) -> None:
    torch.save(networks.Actor(4, 3).state_dict(), "bare.pt")
    torch.save(networks.Actor(4, 3).state_dict(), "old.pth", _use_new_zipfile_serialization=False)
    for file in ("bare.pt", "old.pth"):
        with pytest.raises(
            UsageError, match=rf"{file} holds weights only: name the class .*,net=MODULE:CLASS"
        ):
            load(file)
        assert load(f"{file},net=my_networks:Actor,args=4,3").logits(SEEN).shape == (3, 3)
    torch.jit.save(torch.jit.script(nn.Linear(4, 3)), "program.pt")
    for line in ("program.pt", "torchscript:program.pt", "statedict:program.pt"):
        with pytest.raises(PolicyError, match=r"TorchScript files are not read .* package\.module:factory"):
            load(line)
    Path("notes.txt").write_text("nothing of the kind")
    with pytest.raises(PolicyError, match="is not a file that gapfloor knows"):
        load("notes.txt")


def test_every_prefix_is_a_loader() -> None:
    for kind in FORMATS:
        with pytest.raises(PolicyError, match="There is no file"):
            load(f"{kind}:no-such-file")


def test_a_torch_in_which_weights_can_run_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion("2.5.1"))
    with pytest.raises(MissingExtraError, match=r'torch 2\.5\.1: pip install "torch>=2\.6"'):
        require_torch("cpu")
