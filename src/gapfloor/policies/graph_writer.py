"""ONNX graphs written node by node, without torch: our own agents, and Stable-Baselines3's MLP policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

#: The operator set and file version of the graphs: old enough for every ONNX Runtime that gapfloor accepts.
OPERATOR_SET, FILE_VERSION = 17, 8

#: The name of a graph's input.
OBSERVATIONS = "observations"


class GraphWriter:
    """Nodes and constants as they are added; each method returns the name of its output."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, values: npt.NDArray[Any]) -> str:
        """A constant of the graph."""
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node."""
        output = f"{operator}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def linear(self, inputs: str, weight: npt.NDArray[Any], bias: npt.NDArray[Any]) -> str:
        """A fully connected layer."""
        return self.add("Gemm", inputs, self.constant(weight), self.constant(bias), transB=1)

    def written(
        self, outputs: Sequence[str], *, shape: Sequence[int], kind: int = TensorProto.FLOAT
    ) -> bytes:
        """The ONNX file from observations `[n, *shape]` of a kind of number to some outputs `[n, any]`."""
        observations = helper.make_tensor_value_info(OBSERVATIONS, kind, ["n", *shape])
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", None]) for name in outputs]
        graph = helper.make_graph(self._nodes, "policy", [observations], ends, self._constants)
        opsets = [helper.make_opsetid("", OPERATOR_SET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=FILE_VERSION)
        content: bytes = model.SerializeToString()
        return content
