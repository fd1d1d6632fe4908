"""ONNX files as policies, run by ONNX Runtime: `onnx:model.onnx`.

An ONNX file is a graph of operators and numbers; nothing is unpickled and no library of custom operators is
loaded. Observations are cast to the type that the graph declares, and images are transposed if it declares
channels first.

Any tensor of a model (an initializer, a constant, one inside a subgraph or function) may lie in a file next to the
model. ONNX Runtime would open these files by itself, after everything was checked and hashed; here they are read
first, only from the model's own folder, and the runtime gets one content that refers to nothing else.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from gapfloor.errors import PolicyError, UsageError
from gapfloor.input_files import check_growth, read_policy_file
from gapfloor.policies.formats.content_hash import extend_hash, hash_bytes
from gapfloor.policies.formats.inference import missing_library
from gapfloor.policies.formats.network_form import NetworkForm
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.graph import GraphPolicy
from gapfloor.policies.notes import first_line

#: The key of the metadata under which files that gapfloor 0.2 exported say what is known of the run.
METADATA = "gapfloor"


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
        policy = GraphPolicy(
            graph,
            name=path.stem,
            header={},
            fingerprint=extend_hash(content_hash, form=form.describe()),
            form=form,
            device=device,
            is_ours=False,
        )
    except PolicyError:
        raise
    except Exception as error:
        raise _not_onnx(path, error) from None
    policy.header = _header(policy.metadata.get(METADATA))
    return policy


def _header(metadata: str | None) -> Mapping[str, Any]:
    try:
        header = json.loads(metadata) if metadata else None
    except ValueError:
        header = None
    return header if isinstance(header, dict) else {"encoder": "onnx"}


def read_onnx(path: Path) -> tuple[bytes, str]:
    """The model of a file with every tensor checked and inside it, and the hash of the files that they came from."""
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
    others = _read_other_files(path, [each for each in tensors if _is_elsewhere(each)])
    available = len(content) + sum(len(each) for each in others.values())
    for tensor in tensors:
        if _is_elsewhere(tensor):
            _bring_in(tensor, others, path=path)
    _check_sizes(model, tensors, path=path, available=available)
    size = model.ByteSize()
    model.DiscardUnknownFields()  # a runtime with a newer schema would read what was not checked here
    is_changed = bool(others) or model.ByteSize() != size
    whole = model.SerializeToString() if is_changed else content
    return whole, hash_bytes(content, *(others[name] for name in sorted(others)))


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


def _is_elsewhere(tensor: Any) -> bool:
    return bool(tensor.data_location == tensor.EXTERNAL)


def _entries(tensor: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in tensor.external_data}


def _read_other_files(path: Path, tensors: list[Any]) -> dict[str, bytes]:
    names = {_entries(each).get("location", "") for each in tensors}
    return {name: read_policy_file(_inside_folder(path, name)) for name in sorted(names)}


def _inside_folder(path: Path, name: str) -> Path:
    """The file that a tensor names, refused when it is outside the folder of the model."""
    folder = path.resolve().parent
    pure = PurePosixPath(name)
    plain = (
        name and not pure.is_absolute() and ".." not in pure.parts and "\\" not in name and "\0" not in name
    )
    try:
        found = (folder / name).resolve() if plain else None
    except (OSError, RuntimeError):  # a loop of symbolic links
        found = None
    if found is None or folder not in found.parents:
        raise PolicyError(
            f"{path} keeps tensors in {name!r}, which is not in its own folder: put the file next to the model and "
            "export it again."
        )
    return found


def _bring_in(tensor: Any, others: dict[str, bytes], *, path: Path) -> None:
    entries = _entries(tensor)
    content = others[entries.get("location", "")]
    try:
        offset = int(entries.get("offset") or 0)
        length = int(entries["length"]) if entries.get("length") else len(content) - offset
    except ValueError:
        offset = length = -1
    if offset < 0 or length < 0 or offset + length > len(content):
        raise PolicyError(
            f"{path} expects the tensor {tensor.name or '(unnamed)'} in bytes of {entries.get('location')} that it "
            "does not have: export or copy both files again."
        )
    tensor.raw_data = content[offset : offset + length]
    del tensor.external_data[:]
    tensor.data_location = tensor.DEFAULT


def _check_sizes(model: Any, tensors: list[Any], *, path: Path, available: int) -> None:
    """Refuse tensors that claim more numbers than they bring, before the runtime makes room for them."""
    import onnx

    total = sum(_bytes_claimed(each, each.dims) for each in tensors)
    total += sum(_bytes_claimed(each.values, each.dims) for each in _messages(model, onnx.SparseTensorProto))
    check_growth(total, available, what=f"The tensors of {path}")


def _bytes_claimed(tensor: Any, dims: Any) -> int:
    from onnx import helper

    try:
        size = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize or 1
    except (KeyError, TypeError, ValueError):
        size = 8
    return int(size) * math.prod(max(0, int(n)) for n in dims)
