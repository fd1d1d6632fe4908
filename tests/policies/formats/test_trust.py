"""Nothing is unpickled without the user's word: a file that would write a marker does not get to."""

from __future__ import annotations

import base64
import io
import json
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.normalisation import main as convert
from gapfloor.policies.load import PolicySource
from policies.formats.two_directories import two_directories


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
    with pytest.raises(PolicyError, match=r"more than tensors, .*add ,trust=yes to unpickle it, which runs"):
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
    )  # runs, and is not a VecNormalize
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


class Adds(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def entries_of_a_program(expression: str = "torch.add(x, x)") -> dict[str, bytes]:
    """The entries of a TorchScript archive whose forward returns `expression` of x."""
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Adds()), buffer)
    with zipfile.ZipFile(buffer) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    return {
        name: content.replace(b"torch.add(x, x)", expression.encode()) if name.endswith(".py") else content
        for name, content in entries.items()
    }


def zip_of(*groups: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
        warnings.simplefilter("ignore")  # names are repeated on purpose
        for entries in groups:
            for name, content in entries.items():
                archive.writestr(name, content)
    return buffer.getvalue()


def ask(path: Path) -> None:
    PolicySource(f"torchscript:{path}").load().logits(np.zeros((2, 3), dtype=np.float32))


@pytest.mark.parametrize(
    "spelling",
    [
        "torch . from_file",
        "ops.aten.from_file",
        'getattr(torch, "from\\x5ffile")',
        'getattr(torch, "from" "_file")',
        'getattr(ops.aten, "from" "_file")',
        'getattr(torch, # "a", "b")\n "from" "_file")',
        "(torch. # quietly\n from_file)",
    ],
)
def test_another_spelling_of_what_opens_files_is_refused(spelling: str, tmp_path: Path, marker: Path) -> None:
    path = tmp_path / "spelt.pt"
    path.write_bytes(zip_of(entries_of_a_program()))
    ask(path)
    path.write_bytes(zip_of(entries_of_a_program(f'{spelling}("{marker}", True, 1)')))
    with pytest.raises(PolicyError, match="reaches outside its tensors"):
        ask(path)
    assert not marker.exists()


@pytest.mark.parametrize("folder", ["code", "CODE"])
def test_a_program_that_occurs_twice_is_refused(folder: str, tmp_path: Path, marker: Path) -> None:
    harmful = {
        name.replace("/code/", f"/{folder}/"): content
        for name, content in entries_of_a_program(f'torch.from_file("{marker}", True, 1)').items()
        if name.endswith(".py")
    }
    path = tmp_path / "twice.pt"
    for groups in ((entries_of_a_program(), harmful), (harmful, entries_of_a_program())):
        path.write_bytes(zip_of(*groups))
        with pytest.raises(PolicyError, match="holds two entries named"):
            ask(path)
    assert not marker.exists()


def test_a_second_directory_of_a_zip_does_not_hide_a_program_that_writes_files(
    tmp_path: Path, marker: Path
) -> None:
    harmless = entries_of_a_program()
    harmful = entries_of_a_program(f'torch.from_file("{marker}", True, 1)')
    harmful = {name: harmful[key] for name, key in zip(harmless, harmful, strict=True)}
    content = two_directories(for_python=harmless, for_torch=harmful)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:  # what a check through zipfile sees
        assert {name: archive.read(name) for name in archive.namelist()} == harmless
    torch.jit.load(io.BytesIO(content))(torch.zeros(2, 3))  # what torch runs
    assert marker.exists()
    marker.unlink()
    path = tmp_path / "two.pt"
    path.write_bytes(content)
    ask(path)  # the checked entries are loaded, whatever else the file holds
    assert not marker.exists()


def test_classes_of_extensions_in_a_programs_data_are_refused(tmp_path: Path) -> None:
    entries = entries_of_a_program()
    name = next(each for each in entries if each.endswith("/data.pkl"))
    entries[name] += b"c__torch__.torch.classes.quantized\nLinearPackedParamsBase\n"
    path = tmp_path / "classes.pt"
    path.write_bytes(zip_of(entries))
    with pytest.raises(PolicyError, match=r"uses torch\.classes, which reaches outside"):
        ask(path)


def entries_of_layers() -> dict[str, bytes]:
    buffer = io.BytesIO()
    torch.jit.save(
        torch.jit.script(torch.nn.Sequential(torch.nn.Linear(3, 300), torch.nn.Linear(300, 2))), buffer
    )
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_program_whose_weights_are_cut_short_does_not_read_other_memory(tmp_path: Path) -> None:
    path, entries = tmp_path / "cut.pt", entries_of_layers()
    path.write_bytes(zip_of(entries))
    ask(path)
    for name in [each for each in entries if "/data/" in each]:
        path.write_bytes(zip_of({**entries, name: entries[name][:-4]}))
        with pytest.raises(PolicyError, match=r"is damaged, .* too short for its tensor"):
            ask(path)


def test_a_program_whose_tensors_claim_more_than_their_storage_is_refused(tmp_path: Path) -> None:
    path, entries = tmp_path / "claims.pt", entries_of_layers()
    name = next(each for each in entries if each.endswith("/data.pkl"))
    sizes = b"M" + (300).to_bytes(2, "little") + b"K\x03t"  # 300 rows of 3
    assert sizes in entries[name]
    entries[name] = entries[name].replace(sizes, b"M" + (60_000).to_bytes(2, "little") + b"K\x03t")
    path.write_bytes(zip_of(entries))
    with pytest.raises(PolicyError, match="a tensor reaches beyond its storage"):
        ask(path)


def test_layers_with_numbers_for_names_are_not_mistaken_for_something_hidden(tmp_path: Path) -> None:
    layers = torch.nn.Sequential(
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()), torch.nn.Linear(4, 2)
    )
    path = tmp_path / "layers.pt"
    torch.jit.save(torch.jit.script(layers), str(path))
    with zipfile.ZipFile(path) as archive:
        code = b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".py"))
    assert b"getattr(" in code
    ask(path)


@pytest.mark.parametrize("data", [b"[]", b"{}", b"null", b'{"action_space": 1}'])
def test_a_zip_that_describes_no_model_is_refused_in_a_sentence(
    data: bytes, ppo: Any, tmp_path: Path
) -> None:
    path = rewrite(ppo.path, tmp_path / "model.zip", data=data)
    with pytest.raises(PolicyError, match="is not a zip that Stable-Baselines3"):
        PolicySource(f"sb3:{path}").load()


def test_a_program_that_is_not_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/code/__torch__.py", b"\xff\xfe\x00")
    with pytest.raises(PolicyError, match="is not a TorchScript file"):
        PolicySource(f"torchscript:{path}").load()
