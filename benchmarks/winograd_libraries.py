"""Our IMPALA agent in ncnn and MNN, which compute 3x3 convolutions by Winograd's algorithm, for `inference_speed.py`.

Both get float32 planes and must be kept from half precision. ncnn has no batches: it is asked about each image alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.policies.encoder_graphs import agent_graph
from gapfloor.policies.load import checkpoint_path
from gapfloor.training.checkpoint_file import read_checkpoint

Infer = Callable[[np.ndarray], np.ndarray]


def as_planes(frames: np.ndarray) -> np.ndarray:
    """Frames as these libraries read them: float32 planes between 0 and 1."""
    return np.ascontiguousarray(frames.transpose(0, 3, 1, 2)).astype(np.float32) / np.float32(255)


def mnn(run: str, frames: np.ndarray) -> Infer:
    """MNN in float32, with the frames of a batch in one call."""
    import MNN.expr
    import MNN.nn

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        output = _write_float_graph(run, path)
        convert = [Path(sys.executable).parent / "mnnconvert", "-f", "ONNX", "--modelFile", path]
        subprocess.run(
            [*convert, "--MNNModel", path.with_suffix(".mnn"), "--bizCode", "x"],
            check=True,
            capture_output=True,
        )
        settings = {"backend": "CPU", "numThread": 1, "precision": "high"}
        runtime = MNN.nn.create_runtime_manager((settings,))
        network = MNN.nn.load_module_from_file(
            str(path.with_suffix(".mnn")), ["planes"], [output], runtime_manager=runtime
        )

    def infer(observations: np.ndarray) -> np.ndarray:
        planes = as_planes(observations)
        logits = network.forward([MNN.expr.const(planes, list(planes.shape), MNN.expr.NCHW)])[0]
        return np.array(logits.read()).reshape(len(planes), -1).copy()

    return infer


def _write_float_graph(run: str, path: Path) -> str:
    """Our graph without the steps that turn frames into planes; returns the name of its output."""
    import onnx

    checkpoint = read_checkpoint(checkpoint_path(run))
    model = onnx.load_from_string(agent_graph(checkpoint.arrays, checkpoint.header, path=path))
    height, width, channels = checkpoint.header["observation_shape"]
    first = next(node for node in model.graph.node if node.op_type == "Conv")
    first.input[0] = "planes"
    kept = [node for node in model.graph.node if node.op_type not in ("Transpose", "Cast", "Div")]
    planes = onnx.helper.make_tensor_value_info("planes", 1, ["n", channels, height, width])
    graph = onnx.helper.make_graph(kept, "agent", [planes], model.graph.output, model.graph.initializer)
    onnx.save(onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=8), path)
    return str(model.graph.output[0].name)


def ncnn(run: str, frames: np.ndarray) -> Infer:
    """Ncnn in float32, one image after the other."""
    import ncnn

    writer = _NcnnWriter(read_checkpoint(checkpoint_path(run)).arrays)
    output = writer.impala()
    network = ncnn.Net()
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage", "int8_inference"):
        setattr(network.opt, f"use_{name}", False)
    network.opt.num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        layers, weights = Path(folder) / "model.param", Path(folder) / "model.bin"
        head = f"7767517\n{len(writer.layers)} {writer.n_blobs}\n"
        layers.write_text(head + "\n".join(writer.layers) + "\n")
        weights.write_bytes(writer.weights)
        network.load_param(str(layers))
        network.load_model(str(weights))

    def infer(observations: np.ndarray) -> np.ndarray:
        rows = []
        for planes in as_planes(observations):
            extractor = network.create_extractor()
            extractor.input("b1", ncnn.Mat(planes))
            rows.append(np.array(extractor.extract(output)[1]))
        return np.stack(rows)

    return infer


class _NcnnWriter:
    """The two files of an ncnn network: its layers as text, and their weights."""

    def __init__(self, arrays: Any) -> None:
        self._arrays = arrays
        self.layers: list[str] = []
        self.weights = b""
        self.n_blobs = 0

    def impala(self) -> str:
        """Write the network; returns the name of its output."""
        hidden = self._layer("Input", [], "0=64 1=64 2=3")[0]
        for number in range(3):
            block = f"encoder.blocks.{number}"
            hidden = self._layer(
                "Pooling", [self._convolution(f"{block}.conv", hidden)], "0=0 1=3 2=2 3=1 5=1"
            )[0]
            for part in ("residual0", "residual1"):
                kept, inner = self._layer("Split", [hidden], "", outputs=2)
                inner = self._convolution(
                    f"{block}.{part}.conv0", self._layer("ReLU", [inner], "")[0], " 9=1"
                )
                inner = self._convolution(f"{block}.{part}.conv1", inner)
                hidden = self._layer("BinaryOp", [inner, kept], "0=0")[0]
        hidden = self._linear("encoder.projection", self._layer("ReLU", [hidden], "")[0], " 9=1")
        return self._linear("policy", hidden, "")

    def _layer(self, kind: str, inputs: list[str], settings: str, outputs: int = 1) -> list[str]:
        names = [f"b{self.n_blobs + 1 + number}" for number in range(outputs)]
        self.n_blobs += outputs
        place = len(self.layers)
        self.layers.append(
            f"{kind} l{place} {len(inputs)} {outputs} {' '.join([*inputs, *names])} {settings}"
        )
        return names

    def _convolution(self, name: str, inputs: str, after: str = "") -> str:
        weight = self._put(name)
        return self._layer("Convolution", [inputs], f"0={len(weight)} 1=3 4=1 5=1 6={weight.size}{after}")[0]

    def _linear(self, name: str, inputs: str, after: str) -> str:
        weight = self._put(name)
        return self._layer("InnerProduct", [inputs], f"0={len(weight)} 1=1 2={weight.size}{after}")[0]

    def _put(self, name: str) -> np.ndarray:
        weight = np.ascontiguousarray(self._arrays[f"{name}.weight"], np.float32)
        bias = np.ascontiguousarray(self._arrays[f"{name}.bias"], np.float32)
        self.weights += bytes(4) + weight.tobytes() + bias.tobytes()  # four zero bytes: plain float32 follows
        return weight
