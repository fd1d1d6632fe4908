"""Files that are cut, damaged, enormous when unpacked, or no files at all: one sentence, and no memory or time lost."""

from __future__ import annotations

import io
import json
import os
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper

from gapfloor.policies.formats.onnx import read_onnx
from gapfloor.policies.graph import open_session
from policies.formats.bombs import rewrite
from policies.formats.refusals import ask_once, memory_used, refusal_of

PREFIXES = ("sb3", "onnx", "cleanrl", "statedict")

#: Memory that a refusal may take on top of what the process had; the bombs below ask for gigabytes.
ALLOWED = 700 << 20


def zip_with(path: Path, entries: dict[str, bytes], *, compress: bool = False) -> Path:
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def zeros_in_a_zip(path: Path, name: str, n_bytes: int) -> Path:
    """A small archive whose entry unpacks to many zeros: one compressed block, repeated."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = compressor.compress(bytes(16 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)
    data = block * (n_bytes // (16 << 20)) + compressor.flush()
    sizes = struct.pack("<HHLLL", 0, 0, 0, len(data), n_bytes)
    local = (
        struct.pack("<4sHHH", b"PK\3\4", 20, 0, 8) + sizes + struct.pack("<HH", len(name), 0) + name.encode()
    )
    entry = struct.pack("<4sHHHH", b"PK\1\2", 20, 20, 0, 8) + sizes
    entry += struct.pack("<HHHHHLL", len(name), 0, 0, 0, 0, 0, 0) + name.encode()
    end = struct.pack("<4sHHHHLLH", b"PK\5\6", 0, 0, 1, 1, len(entry), len(local) + len(data), 0)
    path.write_bytes(local + data + entry + end)
    return path


def saved(content: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def graph(nodes: list[Any], initializers: list[Any] | None = None, **more: Any) -> Any:
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3])  # noqa: E731
    made = helper.make_graph(nodes, "g", [value("x")], [value("y")], initializers or [], **more)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SEEN = np.zeros((2, 3), dtype=np.float32)


class TestNoFile:
    @pytest.mark.parametrize("prefix", [*PREFIXES, ""])
    def test_what_is_not_a_regular_file_is_refused_at_once(self, prefix: str, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.zip")
        (tmp_path / "loop.zip").symlink_to(tmp_path / "loop.zip")
        (tmp_path / "dangling.zip").symlink_to(tmp_path / "nowhere")
        start = f"{prefix}:" if prefix else ""
        assert "is a pipe, socket or device" in str(refusal_of(f"{start}{tmp_path / 'pipe.zip'}"))
        assert "cannot be read" in str(refusal_of(f"{start}{tmp_path / 'loop.zip'}"))
        assert "There is no file" in str(refusal_of(f"{start}{tmp_path / 'dangling.zip'}"))
        assert "There is no file" in str(refusal_of(f"{start}{tmp_path / 'missing.zip'}"))
        if prefix:
            assert "is a folder" in str(refusal_of(f"{start}{tmp_path}"))
        else:
            assert "There is no checkpoint" in str(refusal_of(str(tmp_path)))

    @pytest.mark.parametrize("prefix", [*PREFIXES, ""])
    @pytest.mark.parametrize(
        "name", ["a\0b.zip", "x" * 5000 + ".zip", "y/" * 3000 + "m.pt", "\0", "\udcff.zip"]
    )
    def test_a_path_that_cannot_be_one_is_refused_in_a_sentence(self, prefix: str, name: str) -> None:
        message = refusal_of(f"{prefix}:{name}" if prefix else name)
        assert message is not None
        assert len(message) < 1000
        assert "function" not in message

    @pytest.mark.parametrize("name", ["a\0b.safetensors", "x" * 5000 + ".safetensors"])
    def test_the_same_holds_for_a_checkpoint(self, name: str) -> None:
        assert "There is no checkpoint" in str(refusal_of(name))

    def test_the_file_of_statistics_is_held_to_the_same(self, ppo: Any, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "stats.npz")
        assert "is a pipe, socket or device" in str(
            refusal_of(f"sb3:{ppo.path},vecnormalize={tmp_path / 'stats.npz'}")
        )

    def test_a_file_of_terabytes_is_not_read(self, tmp_path: Path) -> None:
        with (tmp_path / "sparse.zip").open("wb") as file:
            file.truncate(1 << 40)
        assert "at most 4,294,967,296 are read" in str(refusal_of(f"sb3:{tmp_path / 'sparse.zip'}"))


class TestBombs:
    @pytest.mark.parametrize("prefix", PREFIXES)
    def test_a_small_zip_that_unpacks_to_gigabytes_is_not_unpacked(self, prefix: str, tmp_path: Path) -> None:
        path = zeros_in_a_zip(tmp_path / "bomb.zip", "data", 3 << 30)
        before = memory_used()
        assert path.stat().st_size < 4 << 20
        message = str(refusal_of(f"{prefix}:{path}"))
        assert "function" not in message
        assert prefix == "onnx" or "would take 3.22 GB of memory when unpacked" in message
        assert memory_used() - before < ALLOWED

    def test_nor_are_the_weights_inside_a_model(self, ppo: Any, tmp_path: Path) -> None:
        inner = zeros_in_a_zip(tmp_path / "inner.pth", "archive/data.pkl", 3 << 30)
        with zipfile.ZipFile(ppo.path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        path = zip_with(tmp_path / "model.zip", {**entries, "policy.pth": inner.read_bytes()})
        before = memory_used()
        assert "policy.pth in" in str(refusal_of(f"sb3:{path}"))
        assert memory_used() - before < ALLOWED

    def test_statistics_that_unpack_to_gigabytes_are_refused(self, ppo: Any, tmp_path: Path) -> None:
        path = zeros_in_a_zip(tmp_path / "stats.npz", "mean.npy", 3 << 30)
        assert "when unpacked" in str(refusal_of(f"sb3:{ppo.path},vecnormalize={path}"))
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
        )
        zip_with(path, {"mean.npy": header.getvalue(), "var.npy": header.getvalue()})
        assert "is cut off" in str(refusal_of(f"sb3:{ppo.path},vecnormalize={path}"))

    def test_a_tensor_that_repeats_one_number_is_not_written_out(self, tmp_path: Path) -> None:
        path = tmp_path / "repeated.pt"
        path.write_bytes(saved({"weight": torch.zeros(1).expand(1 << 31)}))
        assert path.stat().st_size < 4096
        assert "would take 8.59 GB of memory" in str(refusal_of(f"statedict:{path},net=torch.nn:Identity"))

    @pytest.mark.parametrize("size", [200_000, 10**9, 10**30, -5])
    def test_a_description_of_an_enormous_network_is_not_built(
        self, size: int, ppo: Any, tmp_path: Path
    ) -> None:
        with zipfile.ZipFile(ppo.path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        data = json.loads(entries["data"])
        data["policy_kwargs"] = {"net_arch": [size, size]}
        path = zip_with(tmp_path / "model.zip", {**entries, "data": json.dumps(data).encode()})
        before = memory_used()
        message = str(refusal_of(f"sb3:{path}"))
        assert "damaged" in message
        assert "function" not in message
        assert memory_used() - before < ALLOWED

    @pytest.mark.parametrize("shape", [[10**6, 10**6], [2**70], "64", [-1], [1.5], None, [1] * 100])
    def test_an_enormous_or_odd_observation_is_not_built(self, shape: Any, ppo: Any, tmp_path: Path) -> None:
        with zipfile.ZipFile(ppo.path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        data = json.loads(entries["data"])
        data["observation_space"]["_shape"] = shape
        path = zip_with(tmp_path / "model.zip", {**entries, "data": json.dumps(data).encode()})
        assert "is damaged" in str(refusal_of(f"sb3:{path}"))

    def test_a_graph_that_asks_for_gigabytes_is_stopped(self, tmp_path: Path) -> None:
        nodes = [
            helper.make_node("ConstantOfShape", ["shape"], ["big"]),
            helper.make_node("ReduceSum", ["big"], ["sum"], keepdims=0),
            helper.make_node("Add", ["x", "sum"], ["y"]),
        ]
        shape = helper.make_tensor("shape", TensorProto.INT64, [1], [1 << 30])
        path = tmp_path / "bomb.onnx"
        onnx.save(graph(nodes, [shape]), str(path))
        before = memory_used()
        assert "memory" in str(ask_once(f"onnx:{path}", SEEN))
        assert memory_used() - before < ALLOWED

    def test_a_sparse_tensor_of_gigabytes_is_refused(self, tmp_path: Path) -> None:
        sparse = helper.make_sparse_tensor(
            helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0]),
            helper.make_tensor("i", TensorProto.INT64, [1], [0]),
            [1 << 31],
        )
        model = graph([helper.make_node("Add", ["x", "w"], ["y"])], sparse_initializer=[sparse])
        onnx.save(model, str(tmp_path / "sparse.onnx"))
        assert "would take 8.59 GB of memory" in str(refusal_of(f"onnx:{tmp_path / 'sparse.onnx'}"))


def constant_node(weights: np.ndarray) -> Any:
    tensor = onnx.numpy_helper.from_array(weights, "constant")
    return graph(
        [helper.make_node("Constant", [], ["w"], value=tensor), helper.make_node("Add", ["x", "w"], ["y"])]
    )


def inside_a_subgraph(weights: np.ndarray) -> Any:
    tensor = onnx.numpy_helper.from_array(weights, "w")
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "branch", [], [output], [tensor])
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    return graph([helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)], [condition])


def initializer(weights: np.ndarray) -> Any:
    tensor = onnx.numpy_helper.from_array(weights, "w")
    return graph([helper.make_node("Add", ["x", "w"], ["y"])], [tensor])


def tensors_of(message: Any) -> list[Any]:
    """Every tensor of weights in a model."""
    if isinstance(message, TensorProto):
        return [message] if message.data_type == TensorProto.FLOAT else []
    found = []
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if hasattr(value, "__len__") else [value]:
                found += tensors_of(each)
    return found


class TestExternalData:
    def split(self, model: Any, path: Path, location: str = "weights.bin", **more: str) -> Path:
        """Write the model with its weights in another file, in the order in which they occur."""
        content = b""
        for tensor in tensors_of(model):
            entries = {
                "location": location,
                "offset": str(len(content)),
                "length": str(len(tensor.raw_data)),
                **more,
            }
            content += tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in entries.items():
                entry = tensor.external_data.add()
                entry.key, entry.value = key, value
        path.write_bytes(model.SerializeToString())
        if "/" not in location:
            (path.parent / location).write_bytes(content)
        return path

    @pytest.mark.parametrize("make", [initializer, constant_node, inside_a_subgraph])
    @pytest.mark.parametrize("location", ["weights.bin", "../secret.bin", "/etc/hostname"])
    def test_tensors_in_other_files_are_refused(
        self, make: Callable[[np.ndarray], Any], location: str, tmp_path: Path
    ) -> None:
        path = self.split(make(np.ones(3, dtype=np.float32)), tmp_path / "split.onnx", location)
        assert "keeps tensors in other files" in str(refusal_of(f"onnx:{path}"))


class TestDamage:
    def test_a_graph_with_a_name_that_is_not_text_is_refused_and_prints_nothing(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        content = initializer(np.ones(3, dtype=np.float32)).SerializeToString()
        path = tmp_path / "bytes.onnx"
        path.write_bytes(content.replace(b"Add", b"A\xff\xfe"))
        assert refusal_of(f"onnx:{path}") is not None
        assert capfd.readouterr().out == ""

    @pytest.mark.parametrize("part", [0.0, 0.01, 0.3, 0.7, 0.97, 0.9999])
    @pytest.mark.parametrize("name", ["ppo", "dqn", "recurrent"])
    def test_a_cut_model_is_called_damaged(
        self, name: str, part: float, request: pytest.FixtureRequest, tmp_path: Path
    ) -> None:
        content = request.getfixturevalue(name).path.read_bytes()
        path = tmp_path / "cut.zip"
        path.write_bytes(content[: int(part * len(content))])
        message = str(refusal_of(f"sb3:{path}"))
        assert "damaged: save or copy it again" in message
        assert "function" not in message

    def test_a_flipped_byte_in_the_weights_is_called_damage(self, ppo: Any, tmp_path: Path) -> None:
        content = bytearray(ppo.path.read_bytes())
        at = content.index(b"archive/data/0" if b"archive/data/0" in content else b"/data/0") + 100
        content[at] ^= 255
        path = tmp_path / "flipped.zip"
        path.write_bytes(content)
        message = str(refusal_of(f"sb3:{path}"))
        assert "damaged" in message
        assert "function" not in message

    @pytest.mark.parametrize(
        "change",
        [
            {"policy_kwargs": [1]}, {"policy_kwargs": {"net_arch": "64"}}, {"policy_kwargs": {"net_arch": [[[]]]}},
            {"policy_kwargs": {"activation_fn": "<class 'torch.nn.modules.activation.NoSuch'>"}},
            {"policy_kwargs": {"lstm_hidden_size": 3}}, {"observation_space": 5}, {"observation_space": {}},
            {"action_space": {":type:": "<class 'gymnasium.spaces.discrete.Discrete'>", "n": "-3"}},
            {"policy_class": 7}, {"policy_class": {"__module__": []}},
        ],
    )  # fmt: skip
    def test_odd_values_in_a_models_description_are_refused(
        self, change: dict[str, Any], ppo: Any, tmp_path: Path
    ) -> None:
        with zipfile.ZipFile(ppo.path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        data = {**json.loads(entries["data"]), **change}
        path = zip_with(tmp_path / "odd.zip", {**entries, "data": json.dumps(data).encode()})
        assert refusal_of(f"sb3:{path}") is not None

    @pytest.mark.parametrize(
        "text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, '{"action_space": ' + "9" * 5000 + "}"]
    )
    def test_json_that_python_cannot_read_is_called_damage(self, text: str, ppo: Any, tmp_path: Path) -> None:
        with zipfile.ZipFile(ppo.path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        path = zip_with(tmp_path / "deep.zip", {**entries, "data": text.encode()})
        assert "damaged" in str(refusal_of(f"sb3:{path}"))
        stats = tmp_path / "stats.json"
        stats.write_text(text)
        assert "does not hold statistics" in str(refusal_of(f"sb3:{ppo.path},vecnormalize={stats}"))

    @pytest.mark.parametrize("kind", [torch.int8, torch.bool, torch.complex64])
    def test_weights_of_another_kind_of_number_are_not_converted(
        self, kind: torch.dtype, tmp_path: Path
    ) -> None:
        weights = torch.nn.Linear(3, 2).state_dict()
        path = tmp_path / "odd.pt"
        path.write_bytes(saved({name: each.to(kind) for name, each in weights.items()}))
        assert "and the network needs real numbers of shape (2,)" in str(
            refusal_of(f"statedict:{path},net=torch.nn:Linear,args=3,2")
        )

    def test_half_precision_weights_are_widened(self, tmp_path: Path) -> None:
        layer = torch.nn.Linear(3, 2)
        path = tmp_path / "half.pt"
        path.write_bytes(saved({name: each.to(torch.bfloat16) for name, each in layer.state_dict().items()}))
        assert ask_once(f"statedict:{path},net=torch.nn:Linear,args=3,2", SEEN) is None


class TestLimitsBeforeWork:
    """Descriptions and archives that would take minutes or gigabytes although the file is small."""

    @pytest.mark.parametrize(
        "keywords",
        [
            {"n_critics": 10**6},
            {"net_arch": [2] * 200_000},
            {"net_arch": {"pi": [1] * 10**5, "vf": []}},
            {"n_lstm_layers": 10**6},
        ],
    )
    def test_more_layers_or_critics_than_tensors_are_refused(
        self, keywords: dict[str, Any], ppo: Any, tmp_path: Path
    ) -> None:
        with zipfile.ZipFile(ppo.path) as archive:
            data = json.loads(archive.read("data"))
        data["policy_kwargs"] = keywords
        path = rewrite(ppo.path, tmp_path / "deep.zip", data=json.dumps(data).encode())
        started = time.monotonic()
        assert "layers or critics" in str(refusal_of(f"sb3:{path}"))
        assert time.monotonic() - started < 5

    @pytest.mark.parametrize("prefix", ["sb3:", "statedict:", ""])
    def test_an_archive_with_100_000_entries_is_refused_before_its_directory_is_read(
        self, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = zip_with(tmp_path / "many.zip", {f"{number}": b"" for number in range(100_000)})
        opened = []
        monkeypatch.setattr(zipfile, "ZipFile", lambda *args: opened.append(args))
        assert refusal_of(f"{prefix}{path}") is not None
        assert opened == []

    def test_an_entry_that_unpacks_to_more_than_it_says_is_not_unpacked_further(self, tmp_path: Path) -> None:
        path = zeros_in_a_zip(tmp_path / "more.zip", "data", 1 << 30)
        content = path.read_bytes().replace(struct.pack("<L", 1 << 30), struct.pack("<L", 10))
        path.write_bytes(content)
        before = memory_used()
        assert "damaged" in str(refusal_of(f"sb3:{path}"))
        assert memory_used() - before < 100 << 20

    def test_a_file_of_another_format_is_not_run_as_onnx(self, tmp_path: Path) -> None:
        content = in_the_runtimes_own_format(tmp_path / "model.ort")
        assert onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).get_inputs()
        with pytest.raises(Exception, match="INVALID_PROTOBUF"):
            open_session(content)

    def test_a_file_that_is_empty_for_the_check_and_a_network_for_the_runtime_is_refused(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "both.onnx"
        path.write_bytes(polyglot(in_the_runtimes_own_format(tmp_path / "model.ort")))
        assert not onnx.load(str(path)).graph.node
        assert onnxruntime.InferenceSession(
            path.read_bytes(), providers=["CPUExecutionProvider"]
        ).get_inputs()
        message = str(refusal_of(f"onnx:{path}"))
        assert str(path) in message
        assert "function" not in message


def in_the_runtimes_own_format(path: Path) -> bytes:
    """A network of one operator in the format of ONNX Runtime, which is not ONNX."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    made = graph([helper.make_node("Relu", ["x"], ["y"])]).SerializeToString()
    onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    return path.read_bytes()


def polyglot(own: bytes) -> bytes:
    """The runtime's own format, in which a reader of ONNX sees an empty network and unknown fields.

    Its first eight bytes are the place of a table and a mark. For the other reader they are field 15 with the value 0,
    and fields of 1 and of 84 bytes, after which a long one hides the rest.
    """

    def number(at: int) -> int:
        return int.from_bytes(own[at : at + 4], "little", signed=True)

    start = number(0)
    fields = start - number(start)
    place = 0x017A0078
    shift = place + 1024 - place % 16
    made = bytearray(shift + len(own))
    made[:8] = place.to_bytes(4, "little") + own[4:8]
    made[shift + 8 :] = own[8:]
    made[place : place + 4] = (place - fields - shift).to_bytes(4, "little", signed=True)
    for at in range(4, int.from_bytes(own[fields + 2 : fields + 4], "little"), 4):
        made[place + at : place + at + 4] = (number(start + at) + start + shift - place).to_bytes(4, "little")
    rest = len(made) - 96
    made[91:96] = bytes([0x7A, *(rest >> 7 * n & 0x7F | (0x80 if n < 3 else 0) for n in range(4))])
    return bytes(made)


def test_what_our_schema_of_onnx_does_not_know_does_not_reach_the_runtime(tmp_path: Path) -> None:
    """A runtime with a newer schema would read fields that the check cannot see."""
    path = tmp_path / "net.onnx"
    onnx.save(initializer(np.ones(3, dtype=np.float32)), str(path))
    sound = path.read_bytes()
    assert read_onnx(path)[0] == sound
    path.write_bytes(sound + b"\xba\x3e\x06hidden")  # field 999, six bytes
    assert b"hidden" not in read_onnx(path)[0]
