"""Nothing is unpickled: a file that would write a marker does not get to."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.load import PolicySource
from policies.formats.bombs import Bomb, bomb_in_every_pickle, rewrite
from policies.formats.two_directories import two_directories


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "it-ran"


def torch_bytes(content: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def test_pickles_in_a_zips_data_do_not_run(ppo: Any, tmp_path: Path, marker: Path) -> None:
    path = rewrite(ppo.path, tmp_path / "model.zip", data=bomb_in_every_pickle(ppo.path, marker))
    policy = PolicySource(f"sb3:{path}").load()
    assert not marker.exists()
    assert policy.fingerprint == PolicySource(f"sb3:{ppo.path}").load().fingerprint
    with pytest.raises(
        ValueError, match="not a Gymnasium space"
    ):  # where it is unpickled, the bomb is a real one
        stable_baselines3.PPO.load(path, device="cpu")
    assert marker.exists()


def test_a_pickle_in_a_zips_weights_does_not_run(ppo: Any, tmp_path: Path, marker: Path) -> None:
    weights = torch_bytes({**ppo.model.policy.state_dict(), "extra": Bomb(marker)})
    path = rewrite(ppo.path, tmp_path / "model.zip", policy_pth=weights)
    with pytest.raises(PolicyError, match=r"more than tensors, .*name a function of your own that loads it"):
        PolicySource(f"sb3:{path}").load()
    assert not marker.exists()


def test_a_pickle_in_vecnormalizes_place_does_not_run(ppo: Any, tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "stats.pkl"
    path.write_bytes(pickle.dumps(Bomb(marker)))
    with pytest.raises(PolicyError, match=r"stats.pkl does not hold statistics"):
        PolicySource(f"sb3:{ppo.path},vecnormalize={path}").load()
    assert not marker.exists()


def test_a_pickled_array_in_an_npz_does_not_run(ppo: Any, tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "stats.npz"
    bombs = np.array([Bomb(marker)], dtype=object)
    np.savez(path, mean=bombs, var=bombs, epsilon=bombs, clip=bombs)
    with pytest.raises(PolicyError, match="does not hold statistics"):
        PolicySource(f"sb3:{ppo.path},vecnormalize={path}").load()
    assert not marker.exists()


def test_a_pickle_in_a_cleanrl_file_does_not_run(tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "agent.pt"
    path.write_bytes(torch_bytes(Bomb(marker)))
    with pytest.raises(
        PolicyError, match=r"holds more than tensors, and reading it would run Python: name a function"
    ):
        PolicySource(f"cleanrl:{path},agent=no_such:Agent").load()
    assert not marker.exists()


def test_no_option_asks_for_a_pickle_to_be_read(ppo: Any) -> None:
    with pytest.raises(UsageError, match="Unknown option of sb3: 'trust'"):
        PolicySource(f"sb3:{ppo.path},trust=yes")


def test_a_pickle_under_another_loaders_prefix_does_not_run(tmp_path: Path, marker: Path) -> None:
    for content in (torch_bytes(Bomb(marker)), pickle.dumps(Bomb(marker))):
        path = tmp_path / "model.pt"
        path.write_bytes(content)
        with pytest.raises(PolicyError):
            PolicySource(f"onnx:{path}").load()
        assert not marker.exists()


def torch_entries(content: Any) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(torch_bytes(content))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_second_directory_of_a_zip_hides_nothing(tmp_path: Path) -> None:
    checked = torch_entries({"weight": torch.zeros(2, 3), "bias": torch.zeros(2)})
    hidden = torch_entries({"weight": torch.ones(2, 3), "bias": torch.ones(2)})
    content = two_directories(for_python=checked, for_torch=hidden)
    assert torch.load(io.BytesIO(content))["bias"].tolist() == [1, 1]  # what torch itself reads
    path = tmp_path / "two.pt"
    path.write_bytes(content)
    policy = PolicySource(f"statedict:{path},net=torch.nn:Linear,args=3,2").load()
    assert not policy.logits(
        np.ones((1, 3), dtype=np.float32)
    ).any()  # the checked entries are what is loaded


@pytest.mark.parametrize("data", [b"[]", b"{}", b"null", b'{"action_space": 1}'])
def test_a_zip_that_describes_no_model_is_refused_in_a_sentence(
    data: bytes, ppo: Any, tmp_path: Path
) -> None:
    path = rewrite(ppo.path, tmp_path / "model.zip", data=data)
    with pytest.raises(PolicyError, match="is not a zip that Stable-Baselines3"):
        PolicySource(f"sb3:{path}").load()
