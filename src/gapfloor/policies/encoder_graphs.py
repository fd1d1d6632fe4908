"""Our agents as ONNX graphs: each encoder's arithmetic written with ONNX operators, without torch.

ONNX Runtime computes an agent's logits about 1.5 times as fast as torch on one thread, and a process that needs no
torch starts a second earlier. A graph is made in memory of a checkpoint's arrays; no code of the checkpoint runs. It is
the function of `training.encoders` up to rounding, which the tests compare for every encoder.

Row of `make bench`: sampled-starpilot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from gapfloor.errors import PolicyError
from gapfloor.policies.graph_writer import OBSERVATIONS, GraphWriter
from gapfloor.training.encoders._sizes import FEATURES, FUSED, POOLED, WIDTHS, map_sizes

Array = npt.NDArray[Any]

#: The positions of a 3x3 kernel along a side.
_TAPS = 3


class _Graph(GraphWriter):
    """The graph of an agent; weights are taken from a checkpoint by name and shape."""

    def __init__(self, arrays: Mapping[str, Array], *, path: Path, encoder: str) -> None:
        super().__init__()
        self.arrays, self._path, self._encoder = dict(arrays), path, encoder

    def weights(self, name: str, *shape: int) -> Array:
        """A tensor of the checkpoint, as float32."""
        found = self.arrays.pop(name, None)
        if found is None or found.shape != shape:
            self.refuse(name, None if found is None else found.shape, shape)
        assert found is not None
        return np.ascontiguousarray(found, dtype=np.float32)

    def refuse(self, name: str, found: tuple[int, ...] | None, expected: tuple[int, ...] | None) -> None:
        raise PolicyError(
            f"{self._path} does not hold the weights of an {self._encoder} agent: {name} has the shape {found}, not "
            f"{expected}."
        )

    def convolution(self, name: str, inputs: str, in_channels: int, out_channels: int) -> str:
        """A 3x3 convolution that keeps the size of its input."""
        weight = self.constant(self.weights(f"{name}.weight", out_channels, in_channels, 3, 3))
        bias = self.constant(self.weights(f"{name}.bias", out_channels))
        return self.add("Conv", inputs, weight, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def layer(self, name: str, inputs: str, in_features: int, out_features: int) -> str:
        """A fully connected layer of the checkpoint."""
        weight = self.weights(f"{name}.weight", out_features, in_features)
        return self.linear(inputs, weight, self.weights(f"{name}.bias", out_features))


def _backbone(graph: _Graph, images: str, channels: int) -> list[str]:
    """The three feature maps of `training.encoders._backbone.Backbone`, finest first."""
    maps = []
    for number, width in enumerate(WIDTHS):
        block = f"encoder.blocks.{number}"
        hidden = graph.convolution(f"{block}.conv", images, channels, width)
        images = graph.add("MaxPool", hidden, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        for part in ("residual0", "residual1"):
            hidden = graph.convolution(f"{block}.{part}.conv0", graph.add("Relu", images), width, width)
            hidden = graph.convolution(f"{block}.{part}.conv1", graph.add("Relu", hidden), width, width)
            images = graph.add("Add", hidden, images)
        maps.append(images)
        channels = width
    return maps


def _impala(graph: _Graph, maps: list[str], height: int, width: int) -> str:
    flat = graph.add("Flatten", graph.add("Relu", maps[-1]))
    inputs = WIDTHS[-1] * map_sizes(height)[-1] * map_sizes(width)[-1]
    return graph.layer("encoder.projection", flat, inputs, FEATURES)


def _impoola(graph: _Graph, maps: list[str], height: int, width: int) -> str:
    pooled = graph.add("Flatten", graph.add("GlobalAveragePool", graph.add("Relu", maps[-1])))
    return graph.layer("encoder.projection", pooled, WIDTHS[-1], FEATURES)


def _fpn(graph: _Graph, maps: list[str], height: int, width: int) -> str:
    """Window sums, laterals, top-down sums and smoothing: see `training.encoders.fpn`, which explains the sums."""
    pooled, fused = [""] * len(maps), ""
    for level in reversed(range(len(maps))):
        rows, columns = map_sizes(height)[level], map_sizes(width)[level]
        down, across = _window_sums(rows), _window_sums(columns)
        # A matrix on each side of a map adds up its windows: [N, C, height, width] becomes [N, C, 12, 12].
        sums = graph.add("MatMul", maps[level], graph.constant(across))
        sums = graph.add("MatMul", graph.constant(np.ascontiguousarray(down.T)), sums)
        name = f"encoder.laterals.{level}"
        weight = graph.weights(f"{name}.weight", FUSED, WIDTHS[level], 1, 1)
        inside = np.outer(down.sum(axis=0), across.sum(axis=0))
        bias = graph.weights(f"{name}.bias", FUSED)[None, :, None, None] * inside
        own = graph.add("Conv", sums, graph.constant(weight), kernel_shape=[1, 1])
        own = graph.add("Add", own, graph.constant(bias.astype(np.float32)))
        if fused:
            doubled = graph.add("MatMul", fused, graph.constant(_DOUBLE))
            doubled = graph.add("MatMul", graph.constant(np.ascontiguousarray(_DOUBLE.T)), doubled)
            own = graph.add("Add", own, doubled)
        fused = own
        name = f"encoder.smooths.{level}"
        window = (rows // POOLED) * (columns // POOLED)
        weight = graph.weights(f"{name}.weight", FUSED, FUSED, 3, 3) / np.float32(window)
        inputs = (fused, graph.constant(weight), graph.constant(graph.weights(f"{name}.bias", FUSED)))
        means = graph.add("Conv", *inputs, kernel_shape=[3, 3], strides=[_TAPS, _TAPS])
        pooled[level] = graph.add("Flatten", means)
    joined = graph.add("Relu", graph.add("Concat", *pooled, axis=1))
    return graph.layer("encoder.projection", joined, len(maps) * FUSED * POOLED**2, FEATURES)


def _window_sums(size: int) -> npt.NDArray[np.float32]:
    """The matrix `[size, 4 windows x 3 taps]` that adds up each window of a line, moved by -1, 0 and 1."""
    window = size // POOLED
    sums = np.zeros((size, POOLED, _TAPS), dtype=np.float32)
    for number in range(POOLED):
        for tap in range(_TAPS):
            start = number * window + tap - 1
            sums[max(0, start) : start + window, number, tap] = 1
    return sums.reshape(size, POOLED * _TAPS)


#: Window sums of a line times this matrix are those of the line with every pixel doubled (`fpn.upsample_sums`).
_DOUBLE = np.kron(np.eye(POOLED), np.array([[1, 0, 0], [1, 2, 1], [0, 0, 1]])).astype(np.float32)

#: Encoder -> what follows its backbone: the graph, the feature maps, height and width of the image -> features.
_HEADS: Mapping[str, Callable[[_Graph, list[str], int, int], str]] = {
    "fpn": _fpn,
    "impala": _impala,
    "impoola": _impoola,
}


def has_graph(header: Mapping[str, Any]) -> bool:
    """Whether the agent of this header can be written as a graph; an encoder of the user's own cannot."""
    height, width, _ = header["observation_shape"]
    if header["encoder"] == "fpn":
        return not any(size % POOLED for side in (height, width) for size in map_sizes(side))
    return header["encoder"] in _HEADS


def agent_graph(arrays: Mapping[str, Array], header: Mapping[str, Any], *, path: Path) -> bytes:
    """The ONNX file of an agent: uint8 observations `[n, height, width, channels]` in, logits out.

    Weights that are not those of the header's encoder are refused. The value head is checked and left out.
    """
    encoder, n_actions = str(header["encoder"]), int(header["n_actions"])
    height, width, channels = header["observation_shape"]
    graph = _Graph(arrays, path=path, encoder=encoder)
    planes = graph.add("Transpose", OBSERVATIONS, perm=[0, 3, 1, 2])
    numbers = graph.add("Cast", planes, to=TensorProto.FLOAT)
    if header.get("blind"):
        numbers = graph.add("Mul", numbers, graph.constant(np.array(0, dtype=np.float32)))
    images = graph.add("Div", numbers, graph.constant(np.array(255, dtype=np.float32)))
    maps = _backbone(graph, images, channels)
    features = graph.add("Relu", _HEADS[encoder](graph, maps, height, width))
    logits = graph.layer("policy", features, FEATURES, n_actions)
    graph.weights("value.weight", 1, FEATURES), graph.weights("value.bias", 1)
    for name, left in sorted(graph.arrays.items()):
        graph.refuse(name, left.shape, None)
    return graph.written([logits], shape=(height, width, channels), kind=TensorProto.UINT8)
