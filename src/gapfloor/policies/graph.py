"""Networks as ONNX graphs, run by ONNX Runtime on one thread: our checkpoints, ONNX files and exported torch networks.

A graph is bytes, so it can be sent to workers, which then need neither torch nor the library that made the network. A
row's bits depend neither on the other rows nor on their number, which `frame_cache` checks before it relies on it.

Rows of `make bench`: sampled-starpilot (our checkpoints) and sb3-starpilot-sampled (what users bring).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import ActionSpace
from gapfloor.errors import PolicyError
from gapfloor.policies.formats.network import NetworkForm, Readout
from gapfloor.policies.notes import first_line

#: ONNX Runtime's names of input types.
TYPES: Mapping[str, type[np.generic]] = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(int32)": np.int32, "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}  # fmt: skip

#: The most memory that ONNX Runtime may take for graphs of others: a graph of a few bytes can ask for any amount.
MOST_MEMORY = 2 << 30


class GraphPolicy:
    """A graph in ONNX Runtime; see `gapfloor.policies.policy.Policy`."""

    backend = "onnxruntime"
    is_function_of_content = True
    acts_in: ActionSpace | None = None
    """The action space that it was trained in, where its file says so."""

    def __init__(
        self,
        graph: bytes,
        *,
        name: str,
        header: Mapping[str, Any],
        fingerprint: str,
        readout: Readout | None = None,
        form: NetworkForm | None = None,
        device: str = "cpu",
        is_ours: bool = True,
    ) -> None:
        self.name, self.header, self.fingerprint, self.device = name, header, fingerprint, device
        self.keeps_no_state = is_ours
        """Whether gapfloor wrote the graph: one of others may draw random numbers, or ask for any amount of memory."""
        self._graph, self._form = graph, form
        self._readout = readout or Readout()
        self._open()

    def _open(self) -> None:
        provider = "CPUExecutionProvider" if self.device == "cpu" else "CUDAExecutionProvider"
        limits_memory = not self.keeps_no_state and _memory_is_limited()
        self._session = open_session(self._graph, provider=provider, limits_memory=limits_memory)
        self._inputs = self._session.get_inputs()
        self._is_for_one_row = all(each.shape and each.shape[0] == 1 for each in self._inputs)
        for each in self._inputs:
            if each.type not in TYPES:
                raise PolicyError(
                    f"{self.name} reads {each.name} as {each.type}, which is not a type that observations have: export "
                    "it with inputs of numbers."
                )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the session, which another process opens again."""
        return {key: each for key, each in self.__dict__.items() if key not in ("_session", "_inputs")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def logits(self, observations: Any) -> Any:
        """Logits of observations, or the parameters of a distribution over other spaces."""
        return self._readout(self.outputs(observations))

    def outputs(self, observations: Any) -> list[npt.NDArray[np.float32]]:
        """The graph's outputs that the readout reads."""
        given = (self._form or NetworkForm()).apply(observations)
        arrays = given if isinstance(given, Mapping) else {self._inputs[0].name: given}
        feeds = {each.name: self._fit(each, arrays) for each in self._inputs}
        if not self._is_for_one_row:
            return self._run(feeds)
        rows = range(len(next(iter(feeds.values()))))
        outputs = [self._run({key: each[row : row + 1] for key, each in feeds.items()}) for row in rows]
        return [np.concatenate(parts) for parts in zip(*outputs, strict=True)]

    def _run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> list[npt.NDArray[np.float32]]:
        try:
            outputs: Sequence[Any] = self._session.run(None, dict(feeds))
        except Exception as error:
            raise PolicyError(f"ONNX Runtime cannot run {self.name}: {first_line(error)}") from None
        if self._form is not None:  # a graph of others may have more outputs
            outputs = [self._form.choose(outputs, name=self.name)]
        return [np.asarray(each, dtype=np.float32) for each in outputs]

    def _fit(self, declared: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
        if declared.name not in arrays:
            raise PolicyError(
                f"{self.name} reads an input {declared.name}, but the observations are {', '.join(sorted(arrays))}: "
                "add ,key=NAME to choose one."
            )
        kind, array = TYPES[declared.type], arrays[declared.name]
        if (
            self.keeps_no_state
            and kind is np.uint8
            and (array.dtype != kind or not _matches(declared.shape, array))
        ):
            raise PolicyError(
                f"{self.name} reads {np.dtype(kind)} observations of shape {tuple(declared.shape[1:])}, not "
                f"{array.dtype} of {array.shape[1:]}: evaluate it in the game that it was trained on."
            )
        array = array.astype(kind, copy=False)
        if not _matches(declared.shape, array) and array.ndim == 4:
            array = np.ascontiguousarray(array.transpose(0, 3, 1, 2))
        if not _matches(declared.shape, array):
            raise PolicyError(
                f"{self.name} reads {declared.name} of shape {list(declared.shape)}, not "
                f"{list(arrays[declared.name].shape)}: was it trained behind a wrapper, e.g. framestack=4?"
            )
        return array


def _matches(declared: Any, array: npt.NDArray[Any]) -> bool:
    """Whether an array has the dimensions that a graph declares; rows are given one by one where it reads one row."""
    wanted = [None if place == 0 and size == 1 else size for place, size in enumerate(declared)]
    return len(wanted) == array.ndim and all(
        size == seen for size, seen in zip(wanted, array.shape, strict=True) if isinstance(size, int)
    )


def open_session(graph: bytes, *, provider: str = "CPUExecutionProvider", limits_memory: bool = False) -> Any:
    """A session of ONNX Runtime on one thread: the number of threads changes the last bits of logits."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are reported once, as ours
    # Otherwise the runtime may take bytes that were checked as ONNX for another format.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    if limits_memory:
        options.add_session_config_entry("session.use_env_allocators", "1")
    # With its fallback, the runtime would print to standard output and try the same again.
    return onnxruntime.InferenceSession(graph, options, providers=[provider], enable_fallback=0)


@functools.cache
def _memory_is_limited() -> bool:
    """Limit the runtime's memory, once per process; False if something else has set up its memory already."""
    import onnxruntime

    place = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    try:
        settings = onnxruntime.OrtArenaCfg({"max_mem": MOST_MEMORY})
        onnxruntime.create_and_register_allocator(place, settings)
    except Exception:  # already registered by the user's program, or not offered by this version
        return False
    return True
