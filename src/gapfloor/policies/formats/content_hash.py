"""The content hash of a loaded policy: its tensors and everything else that its logits depend on.

Names of files do not enter, so that a copy is the same policy, and whether the file was unpickled or rebuilt
does not either.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def hash_arrays(arrays: Mapping[str, Any], description: Mapping[str, Any]) -> str:
    """The hash of named tensors or arrays (name, type, shape, bytes) and a description that JSON can hold."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for name in sorted(arrays):
        value = arrays[name]
        array = np.ascontiguousarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
        digest.update(f"{name}|{array.dtype}|{array.shape}|".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def hash_files(*paths: Path) -> str:
    """The hash of files' bytes, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{len(content)}|".encode())
        digest.update(content)
    return digest.hexdigest()


def extend_hash(fingerprint: str, **more: Any) -> str:
    """The hash of a policy that has something in front of it."""
    return hashlib.sha256(json.dumps([fingerprint, more], sort_keys=True).encode()).hexdigest()


def source_of(cls: type) -> str:
    """The hash of the file that defines a user's class: other code, other policy. Empty where there is none."""
    try:
        file = inspect.getsourcefile(cls)
    except TypeError:
        return ""
    return hash_files(Path(file)) if file is not None and Path(file).is_file() else ""
