"""One of our agents in ONNX Runtime: the same policy as `checkpoint.CheckpointPolicy`, without torch.

On one thread the logits of a row depend on that row alone, not on its companions or on the number of rows; the tests
compare the bits for every encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.backends import ONNXRUNTIME
from gapfloor.policies.encoder_graphs import Array, agent_graph
from gapfloor.policies.formats.inference import check_frames


class GraphPolicy:
    """An agent as an ONNX graph; see `gapfloor.policies.protocol.Policy`."""

    backend = ONNXRUNTIME
    device = "cpu"
    keeps_no_state = True

    def __init__(
        self, arrays: Mapping[str, Array], *, name: str, header: Mapping[str, Any], path: Path
    ) -> None:
        self.name = name
        self.header = header
        self.fingerprint = str(header["content_hash"])
        self._shape = tuple(header["observation_shape"])
        self._session = open_session(agent_graph(arrays, header, path=path))

    def logits(self, observations: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Logits `[N, actions]` of uint8 observations `[N, height, width, channels]`."""
        frames = check_frames(observations, name=self.name, shape=self._shape)
        if self.header.get("blind"):
            # Every row is the same black image: one is computed.
            return np.repeat(self._run(np.zeros_like(frames[:1])), len(frames), axis=0)
        return self._run(frames)

    def _run(self, frames: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        logits: npt.NDArray[np.float32] = self._session.run(None, {"observations": frames})[0]
        return logits


def open_session(graph: bytes) -> Any:
    """A session of ONNX Runtime on one thread of the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # thread counts change the last bits
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
