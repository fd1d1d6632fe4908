"""Stable-Baselines3's MLP policies without torch: the numbers of torch's own export, and nothing else."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3

import gapfloor
from gapfloor.errors import MissingExtraError, PolicyError
from gapfloor.policies.formats.sb3 import SB3Policy
from gapfloor.policies.formats.torch_file import read_state_dict
from gapfloor.policies.graph import GraphPolicy
from gapfloor.policies.load import PolicySource

RELU = {"activation_fn": torch.nn.ReLU, "net_arch": {"pi": [5], "vf": []}}
MODELS = {
    "ppo": lambda: PPO("MlpPolicy", "CartPole-v1", policy_kwargs=RELU),
    "ppo-without-layers": lambda: PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": []}),
    "ppo-box": lambda: PPO("MlpPolicy", "Pendulum-v1"),
    "a2c": lambda: A2C("MlpPolicy", "Acrobot-v1"),
    "dqn": lambda: DQN("MlpPolicy", "CartPole-v1", buffer_size=9, exploration_initial_eps=0.2),
    "sac": lambda: SAC("MlpPolicy", "Pendulum-v1", buffer_size=9),
    "td3": lambda: TD3("MlpPolicy", "Pendulum-v1", buffer_size=9),
    "ddpg": lambda: DDPG("MlpPolicy", "Pendulum-v1", buffer_size=9),
}


@pytest.fixture(scope="module", params=MODELS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    model = MODELS[request.param]()
    with torch.no_grad():
        for weights in model.policy.parameters():
            weights.add_(0.3 * torch.randn(weights.shape))
    path = tmp_path_factory.mktemp("models") / f"{request.param}.zip"
    model.save(path)
    return path


def test_the_graph_has_the_numbers_of_torchs_export_and_the_same_name(saved: Path) -> None:
    mine = PolicySource(f"sb3:{saved}").load()
    theirs: Any = PolicySource(f"sb3:{saved}", backend="torch").load()
    assert isinstance(mine, GraphPolicy)
    assert isinstance(theirs, SB3Policy)
    assert (mine.fingerprint, mine.header, mine.acts_in) == (
        theirs.fingerprint,
        theirs.header,
        theirs.acts_in,
    )
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        observations = (3 * rng.normal(size=(7, *theirs.network.observation_space.shape))).astype(dtype)
        exported = theirs.exported(observations)
        for own, other in zip(mine.outputs(observations), exported.outputs(observations), strict=True):
            assert np.array_equal(own, other)
        found, wanted = mine.logits(observations), theirs.logits(observations)
        assert type(found) is type(wanted)
        if isinstance(found, np.ndarray):
            assert np.allclose(found, wanted, atol=1e-5)


@pytest.mark.fast
def test_neither_torch_nor_the_library_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PPO("MlpPolicy", "CartPole-v1").save(tmp_path / "model.zip")
    PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"activation_fn": torch.nn.ELU}).save(tmp_path / "elu.zip")
    for library in ("torch", "stable_baselines3"):
        monkeypatch.setitem(sys.modules, library, None)
    result = gapfloor.evaluate(
        f"sb3:{tmp_path / 'model.zip'}", game="gym:CartPole-v1", rules=["sampled"], train="0:4", test="9:13", draws=[0],
        episodes=16, workers=1, store=tmp_path / "store",
    )  # fmt: skip
    assert len(result.floor_comparisons) == 2
    with pytest.raises(MissingExtraError, match=r"needs (torch|stable_baselines3)"):
        PolicySource(f"sb3:{tmp_path / 'elu.zip'}").load()


def test_an_observation_of_another_shape_is_refused(saved: Path) -> None:
    with pytest.raises(PolicyError, match="was it trained behind a wrapper"):
        PolicySource(f"sb3:{saved}").load().logits(np.zeros((2, 99), np.float32))


class Evil:
    def __reduce__(self) -> Any:
        return print, ("executed",)


@pytest.mark.parametrize(
    "content",
    [
        {"a": Evil()},
        {"a": torch.zeros(2, 3).T},
        {"a": torch.zeros(2, dtype=torch.float16)},
        {"a": torch.zeros(1).to_sparse()},
        {"a": {"b": torch.zeros(1)}},
        [torch.zeros(1)],
        {},
    ],
)
def test_what_is_not_a_plain_state_dict_is_left_to_torch(
    content: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(content, tmp_path / "file.pth")
    assert read_state_dict((tmp_path / "file.pth").read_bytes(), name="file") is None
    assert capsys.readouterr().out == ""


def test_a_tensor_outside_its_storage_is_left_to_torch(tmp_path: Path) -> None:
    torch.save({"a": torch.arange(4.0)}, tmp_path / "file.pth")
    with zipfile.ZipFile(tmp_path / "file.pth") as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(tmp_path / "short.pth", "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content[:8] if "/data/" in name else content)
    assert read_state_dict((tmp_path / "short.pth").read_bytes(), name="file") is None
    found = read_state_dict((tmp_path / "file.pth").read_bytes(), name="file")
    assert found is not None
    assert np.array_equal(found["a"], np.arange(4.0, dtype=np.float32))
