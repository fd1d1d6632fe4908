"""ONNX files as policies, run by ONNX Runtime: `onnx:model.onnx`.

An ONNX file is a graph of operators and numbers; nothing is unpickled and no library of custom operators is
loaded. Observations are cast to the type that the graph declares, and images are transposed where it declares
channels first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.content_hash import extend_hash, hash_files
from gapfloor.policies.formats.image_input import InputForm
from gapfloor.policies.formats.inference import missing_library
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.protocol import Logits

#: ONNX Runtime's names of input types.
TYPES: Mapping[str, type[np.generic]] = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(int32)": np.int32, "tensor(int64)": np.int64,
}  # fmt: skip

#: The key of the file's metadata under which `onnx_export` puts what is known of the run.
METADATA = "gapfloor"


class OnnxPolicy:
    """A graph in ONNX Runtime; see `gapfloor.policies.protocol.Policy`."""

    backend = "onnxruntime"

    def __init__(self, session: Any, form: InputForm, *, name: str, fingerprint: str, device: str) -> None:
        self.name, self.fingerprint, self.device = name, fingerprint, device
        self.header = _header(session)
        self._session, self._form = session, form
        self._inputs = session.get_inputs()
        for each in self._inputs:
            if each.type not in TYPES:
                raise PolicyError(f"{name} reads {each.name} as {each.type}, which no observation is.")

    def logits(self, observations: Any) -> Logits:
        """Logits: the graph's output, or the one that `output=` names."""
        given = self._form.apply(observations)
        arrays = given if isinstance(given, Mapping) else {self._inputs[0].name: given}
        feeds = {each.name: self._fit(each, arrays) for each in self._inputs}
        if all(each.shape and each.shape[0] == 1 for each in self._inputs):
            # Exported for one observation at a time.
            rows = range(len(next(iter(feeds.values()))))
            return np.concatenate(
                [self._run({k: v[row : row + 1] for k, v in feeds.items()}) for row in rows]
            )
        return self._run(feeds)

    def _run(self, feeds: Mapping[str, npt.NDArray[Any]]) -> Logits:
        outputs = self._session.run(None, dict(feeds))
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
    if declared and declared[0] == 1:  # rows go one by one
        fixed = fixed[1:]
    return all(want == seen for want, seen in fixed)


def _header(session: Any) -> Mapping[str, Any]:
    metadata = session.get_modelmeta().custom_metadata_map.get(METADATA)
    try:
        header = json.loads(metadata) if metadata else None
    except ValueError:
        header = None
    return header if isinstance(header, dict) else {"encoder": "onnx"}


def load_onnx(spec: PolicySpec, *, device: str) -> OnnxPolicy:
    """The policy of an ONNX file."""
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_library(error) from None
    path, form = spec.file(), InputForm.of(spec)
    provider = "CPUExecutionProvider" if device == "cpu" else "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers() or not device.startswith(("cpu", "cuda")):
        raise UsageError(f"ONNX Runtime cannot use the device '{device}' here: use --device cpu.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # thread counts move the last bits
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=[provider])
    except Exception as error:
        raise PolicyError(f"{path} does not load as ONNX: {str(error).strip().splitlines()[0]}") from None
    content = extend_hash(hash_files(path, *_external_files(path)), form=form.describe())
    return OnnxPolicy(session, form, name=path.stem, fingerprint=content, device=device)


def _external_files(path: Path) -> list[Path]:
    """Files beside the graph that hold its larger tensors."""
    try:
        import onnx
        from onnx.external_data_helper import uses_external_data
    except ImportError as error:
        raise missing_library(error) from None
    graph = onnx.load(str(path), load_external_data=False).graph
    names = {
        entry.value
        for tensor in graph.initializer
        if uses_external_data(tensor)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    return [path.parent / name for name in sorted(names)]
