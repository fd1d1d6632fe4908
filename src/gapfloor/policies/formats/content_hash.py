"""The content hash of a loaded policy: its tensors and everything else that its logits depend on.

File names are not part of it, so that a copy is the same policy. Neither is whether the file was unpickled or
rebuilt.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def hash_arrays(arrays: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    """The hash of named tensors or arrays (name, type, shape, bytes) and a description that JSON can hold."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(arrays):
        value = arrays[name]
        kind, array = _array(value)
        digest.update(f"{name}|{kind}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _array(value: Any) -> tuple[str, npt.NDArray[Any]]:
    if not hasattr(value, "detach"):
        array = np.ascontiguousarray(value)
        return str(array.dtype), array
    tensor = value.detach().cpu().contiguous()
    if str(tensor.dtype) == "torch.bfloat16":  # a type that numpy does not have
        import torch

        return "bfloat16", tensor.view(torch.int16).numpy()
    array = np.ascontiguousarray(tensor.numpy())
    return str(array.dtype), array


def hash_bytes(*contents: bytes) -> str:
    """The hash of files' contents, in the order given."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(f"{len(content)}|".encode())
        digest.update(content)
    return digest.hexdigest()


def extend_hash(fingerprint: str, **more: Any) -> str:
    """The hash of a policy together with what is done to its observations."""
    return hashlib.sha256(json.dumps([fingerprint, more], sort_keys=True).encode()).hexdigest()


def sources_in(module: Any, *, libraries: tuple[str, ...] = ("torch.",)) -> list[str]:
    """The hashes of the files that define the classes of a torch module and its parts, without those of libraries.

    Other code is another policy. The hash of a class without a file is empty.
    """
    hashes = []
    for cls in {type(part) for part in module.modules() if not type(part).__module__.startswith(libraries)}:
        file = None
        with contextlib.suppress(TypeError):
            file = inspect.getsourcefile(cls)
        hashes.append(hash_bytes(Path(file).read_bytes()) if file and Path(file).is_file() else "")
    return sorted(hashes)


def describe_module(module: Any) -> dict[str, Any]:
    """What a torch module's logits depend on besides its weights: its layers, and the source of the user's classes."""
    # The repr lists the layers, so that an activation without weights counts.
    return {"layers": repr(module), "source": sources_in(module)}
