"""ONNX files as policies, run by ONNX Runtime: `onnx:model.onnx`.

An ONNX file is a graph of operators and numbers; nothing is unpickled and no library of custom operators is
loaded. Observations are cast to the type that the graph declares, and images are transposed if it declares
channels first.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.content_hash import extend_hash
from gapfloor.policies.formats.inference import missing_library, open_session
from gapfloor.policies.formats.network_form import NetworkForm
from gapfloor.policies.formats.onnx_file import not_onnx, read_onnx
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import first_line
from gapfloor.policies.policy import Logits

#: ONNX Runtime's names of input types.
TYPES: Mapping[str, type[np.generic]] = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(int32)": np.int32, "tensor(int64)": np.int64,
}  # fmt: skip

#: The key of the file's metadata under which `onnx_export` stores what is known of the run.
METADATA = "gapfloor"

#: The most memory that ONNX Runtime may take in this process: a graph of a few bytes can ask for any amount.
MOST_MEMORY = 2 << 30


class OnnxPolicy:
    """A graph in ONNX Runtime; see `gapfloor.policies.policy.Policy`."""

    backend = "onnxruntime"

    def __init__(self, session: Any, form: NetworkForm, *, name: str, fingerprint: str, device: str) -> None:
        self.name, self.fingerprint, self.device = name, fingerprint, device
        self.header = _header(session)
        self._session, self._form = session, form
        self._inputs = session.get_inputs()
        for each in self._inputs:
            if each.type not in TYPES:
                raise PolicyError(
                    f"{name} reads {each.name} as {each.type}, which is not a type that observations have: export it "
                    "with inputs of numbers."
                )

    def logits(self, observations: Any) -> Any:
        """The graph's output, or the one that `output=` names, as logits or as the stated distribution."""
        given = self._form.apply(observations)
        arrays = given if isinstance(given, Mapping) else {self._inputs[0].name: given}
        feeds = {each.name: self._fit(each, arrays) for each in self._inputs}
        if all(each.shape and each.shape[0] == 1 for each in self._inputs):
            # Exported for one observation at a time.
            rows = range(len(next(iter(feeds.values()))))
            outputs = np.concatenate(
                [self._run({k: v[row : row + 1] for k, v in feeds.items()}) for row in rows]
            )
        else:
            outputs = self._run(feeds)
        return self._form.policy_output(outputs)

    def _run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Logits:
        try:
            outputs = self._session.run(None, dict(feeds))
        except Exception as error:
            raise PolicyError(f"ONNX Runtime cannot run {self.name}: {first_line(error)}") from None
        return np.asarray(self._form.choose(outputs, name=self.name), dtype=np.float32)

    def _fit(self, declared: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
        if declared.name not in arrays:
            raise PolicyError(
                f"{self.name} reads an input {declared.name}, but the observations are {', '.join(sorted(arrays))}."
            )
        array = arrays[declared.name].astype(TYPES[declared.type], copy=False)
        if not _matches(declared.shape, array) and array.ndim == 4:
            turned = np.ascontiguousarray(array.transpose(0, 3, 1, 2))
            array = turned if _matches(declared.shape, turned) else array
        if not _matches(declared.shape, array):
            raise PolicyError(
                f"{self.name} reads {declared.name} of shape {list(declared.shape)}, not {list(array.shape)}."
            )
        return array


def _matches(declared: Any, array: npt.NDArray[Any]) -> bool:
    if len(declared) != array.ndim:
        return False
    fixed = [(want, seen) for want, seen in zip(declared, array.shape, strict=True) if isinstance(want, int)]
    if declared and declared[0] == 1:  # rows are given one by one
        fixed = fixed[1:]
    return all(want == seen for want, seen in fixed)


def _header(session: Any) -> Mapping[str, Any]:
    metadata = session.get_modelmeta().custom_metadata_map.get(METADATA)
    try:
        header = json.loads(metadata) if metadata else None
    except ValueError:
        header = None
    return header if isinstance(header, dict) else {"encoder": "onnx"}


def load_onnx(spec: PolicySpec, *, device: str) -> tuple[OnnxPolicy, PolicySpec]:
    """The policy of an ONNX file."""
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_library(error) from None
    path, form = spec.path, NetworkForm.of(spec)
    provider = "CPUExecutionProvider" if device == "cpu" else "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers() or not device.startswith(("cpu", "cuda")):
        raise UsageError(f"ONNX Runtime cannot use the device '{device}' here: use --device cpu.")
    file = read_onnx(path)
    try:
        session = open_session(file.content, provider=provider, limits_memory=_memory_is_limited())
    except Exception as error:
        raise not_onnx(path, error) from None
    content = form.extend(extend_hash(file.content_hash, form=form.describe()))
    return OnnxPolicy(session, form, name=path.stem, fingerprint=content, device=device), spec


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
