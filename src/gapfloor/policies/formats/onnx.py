"""ONNX files as policies, run by ONNX Runtime: `onnx:model.onnx`.

An ONNX file is a graph of operators and numbers; nothing is unpickled and no library of custom operators is
loaded. Observations are cast to the type that the graph declares, and images are transposed if it declares
channels first.

A model whose tensors lie in other files is refused: ONNX Runtime would open these files by itself, after everything was
checked and hashed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError, UsageError
from gapfloor.input_files import check_growth, read_policy_file
from gapfloor.policies.backends import missing_library
from gapfloor.policies.formats.content_hash import extend_hash, hash_bytes
from gapfloor.policies.formats.network import NetworkForm
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.graph import GraphPolicy
from gapfloor.policies.notes import first_line


def load_onnx(spec: PolicySpec, *, device: str) -> GraphPolicy:
    """The policy of an ONNX file."""
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_library(error) from None
    path, form = spec.path, NetworkForm.of(spec)
    provider = "CPUExecutionProvider" if device == "cpu" else "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers() or not device.startswith(("cpu", "cuda")):
        raise UsageError(f"ONNX Runtime cannot use the device '{device}' here: use --device cpu.")
    graph, content_hash = read_onnx(path)
    try:
        return GraphPolicy(
            graph,
            name=path.stem,
            header={"encoder": "onnx"},
            fingerprint=extend_hash(content_hash, form=form.describe()),
            form=form,
            device=device,
            is_ours=False,
        )
    except PolicyError:
        raise
    except Exception as error:
        raise _not_onnx(path, error) from None


def read_onnx(path: Path) -> tuple[bytes, str]:
    """The model of a file with every tensor checked, and the hash of the file."""
    try:
        import onnx
    except ImportError as error:
        raise missing_library(error) from None
    content = read_policy_file(path)
    try:
        model = onnx.ModelProto.FromString(content)
    except Exception as error:  # protobuf's error class has moved between versions
        raise _not_onnx(path, error) from None
    tensors = list(_messages(model, onnx.TensorProto))
    if any(each.data_location == each.EXTERNAL for each in tensors):
        raise PolicyError(
            f"{path} keeps tensors in other files: export it with external_data=False, or write one file with "
            "onnx.save(onnx.load(FILE), NEW_FILE)."
        )
    # Refused before the runtime makes room for them: tensors that claim more numbers than they bring.
    claimed = sum(_bytes_claimed(each, each.dims) for each in tensors)
    sparse = _messages(model, onnx.SparseTensorProto)
    claimed += sum(_bytes_claimed(each.values, each.dims) for each in sparse)
    check_growth(claimed, len(content), what=f"The tensors of {path}")
    size = model.ByteSize()
    model.DiscardUnknownFields()  # a runtime with a newer schema would read what was not checked here
    return content if model.ByteSize() == size else model.SerializeToString(), hash_bytes(content)


def _not_onnx(path: Path, error: BaseException) -> PolicyError:
    """The refusal of a file that is not an ONNX model, or not a whole one."""
    return PolicyError(
        f"{path} does not load as ONNX ({first_line(error, most=200)}): export or copy it again."
    )


def _messages(message: Any, kind: Any) -> Iterator[Any]:
    """Every message of a kind anywhere inside another one."""
    if isinstance(message, kind):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if hasattr(value, "__len__") and not hasattr(value, "ListFields") else (value,):
            yield from _messages(each, kind)


def _bytes_claimed(tensor: Any, dims: Any) -> int:
    from onnx import helper

    try:
        size = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize or 1
    except (KeyError, TypeError, ValueError):
        size = 8
    return int(size) * math.prod(max(0, int(n)) for n in dims)
