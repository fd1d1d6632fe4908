"""Nothing is unpickled without the user's word: a file that would write a marker does not get to."""

from __future__ import annotations

import base64
import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.normalisation import main as convert
from gapfloor.policies.load import PolicySource


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = str(marker)

    def __reduce__(self) -> Any:
        return open, (self._marker, "w")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "it-ran"


def rewrite(source: Path, target: Path, **members: bytes) -> Path:
    """The zip with some of its members replaced."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, members.get(name.replace(".", "_"), old.read(name)))
    return target


def bomb_in_every_pickle(source: Path, marker: Path) -> bytes:
    with zipfile.ZipFile(source) as archive:
        data = json.loads(archive.read("data"))
    for value in data.values():
        if isinstance(value, dict) and ":serialized:" in value:
            value[":serialized:"] = base64.b64encode(pickle.dumps(Bomb(marker))).decode()
    return json.dumps(data).encode()


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
        PolicyError, match="does not load"
    ):  # with the word they do run: the bomb is a real one
        PolicySource(f"sb3:{path},trust=yes").load()
    assert marker.exists()


def test_a_pickle_in_a_zips_weights_does_not_run(ppo: Any, tmp_path: Path, marker: Path) -> None:
    weights = torch_bytes({**ppo.model.policy.state_dict(), "extra": Bomb(marker)})
    path = rewrite(ppo.path, tmp_path / "model.zip", policy_pth=weights)
    with pytest.raises(PolicyError, match=r"more than tensors .*add ,trust=yes to unpickle it, which runs"):
        PolicySource(f"sb3:{path}").load()
    assert not marker.exists()


def test_a_pickle_in_vecnormalizes_place_does_not_run(ppo: Any, tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "stats.pkl"
    path.write_bytes(pickle.dumps(Bomb(marker)))
    with pytest.raises(PolicyError, match=r"stats.pkl is a pickle: add ,trust=yes"):
        PolicySource(f"sb3:{ppo.path},vecnormalize={path}").load()
    assert convert([str(path), "--out", str(tmp_path / "stats.npz")]) == 2
    assert not marker.exists()
    assert (
        convert([str(path), "--out", str(tmp_path / "stats.npz"), "--trust"]) == 2
    )  # runs, and is no VecNormalize
    assert marker.exists()


def test_a_pickled_array_in_an_npz_does_not_run(ppo: Any, tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "stats.npz"
    bombs = np.array([Bomb(marker)], dtype=object)
    np.savez(path, mean=bombs, var=bombs, epsilon=bombs, clip=bombs)
    with pytest.raises(PolicyError, match="does not hold statistics"):
        PolicySource(f"sb3:{ppo.path},vecnormalize={path},trust=yes").load()
    assert not marker.exists()


def test_a_pickle_in_a_cleanrl_file_does_not_run(tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "agent.pt"
    path.write_bytes(torch_bytes(Bomb(marker)))
    with pytest.raises(
        PolicyError, match=r"holds more than tensors, and reading it would run Python: add ,trust=yes"
    ):
        PolicySource(f"cleanrl:{path},agent=no_such:Agent").load()
    assert not marker.exists()
    with pytest.raises(PolicyError, match="not a state_dict"):
        PolicySource(f"cleanrl:{path},agent=no_such:Agent,trust=yes").load()
    assert marker.exists()


@pytest.mark.parametrize("kind", ["torchscript", "onnx"])
def test_a_pickle_under_another_loaders_prefix_does_not_run(kind: str, tmp_path: Path, marker: Path) -> None:
    for content in (torch_bytes(Bomb(marker)), pickle.dumps(Bomb(marker))):
        path = tmp_path / "model.pt"
        path.write_bytes(content)
        with pytest.raises(PolicyError):
            PolicySource(f"{kind}:{path}").load()
        assert not marker.exists()


def test_a_torchscript_program_that_opens_files_needs_the_users_word(tmp_path: Path, marker: Path) -> None:
    class Writes(torch.nn.Module):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.from_file(self.name, shared=True, size=1)[0]

    path = tmp_path / "writes.pt"
    torch.jit.save(torch.jit.script(Writes(str(marker))), str(path))
    with pytest.raises(PolicyError, match=r"uses torch\.from_file, which reaches outside its tensors"):
        PolicySource(f"torchscript:{path}").load()
    assert not marker.exists()
    PolicySource(f"torchscript:{path},trust=yes").load().logits(np.zeros((2, 3), dtype=np.float32))
    assert marker.exists()


@pytest.mark.parametrize(
    "spelling", ["torch . from_file", "ops.aten.from_file", 'getattr(torch, "from\\x5ffile")']
)
@pytest.mark.parametrize("folder", ["code", "CODE"])
def test_another_spelling_of_what_opens_files_needs_the_users_word_too(
    spelling: str, folder: str, tmp_path: Path, marker: Path
) -> None:
    class Adds(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + x

    plain, path = tmp_path / "plain.pt", tmp_path / "spelt.pt"
    torch.jit.save(torch.jit.script(Adds()), str(plain))
    assert PolicySource(f"torchscript:{plain}").load() is not None
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
            if name.endswith(".py"):
                content = (
                    old.read(name).decode().replace("torch.add(x, x)", f'{spelling}("{marker}", True, 1)')
                )
                assert spelling in content
                new.writestr(name.replace("/code/", f"/{folder}/"), content)
    with pytest.raises(PolicyError, match="reaches outside its tensors"):
        PolicySource(f"torchscript:{path}").load()
    assert not marker.exists()


@pytest.mark.parametrize("data", [b"[]", b"{}", b"null", b'{"action_space": 1}'])
def test_a_zip_that_describes_no_model_is_refused_in_a_sentence(
    data: bytes, ppo: Any, tmp_path: Path
) -> None:
    path = rewrite(ppo.path, tmp_path / "model.zip", data=data)
    with pytest.raises(PolicyError, match="is not a zip that Stable-Baselines3"):
        PolicySource(f"sb3:{path}").load()


def test_a_program_that_is_no_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/code/__torch__.py", b"\xff\xfe\x00")
    with pytest.raises(PolicyError, match="is not a TorchScript file"):
        PolicySource(f"torchscript:{path}").load()
