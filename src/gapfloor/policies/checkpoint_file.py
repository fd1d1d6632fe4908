"""A gapfloor checkpoint read from bytes, with every value of its header checked before it is used.

The content hash covers the tensors and is the identity of the policy. A header may also carry a `header_hash` over
the whole header; if it does, an edited label (levels, seed, steps) is found.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.safetensors_file import SafetensorsFile, read_safetensors
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.training.checkpoint import FORMAT, Checkpoint, architecture, hash_contents

#: The field of a header that holds the hash of all its other fields.
HEADER_HASH = "header_hash"

#: The types of weights that gapfloor writes: half precision in the checkpoints that `export_half` rounds.
_TYPES = ("F32", "F16")

#: The largest number of pixels or actions that a header may claim.
_MOST = 1 << 24


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) < 1000


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_shape(value: Any) -> bool:
    return (
        isinstance(value, list)
        and 1 <= len(value) <= 4
        and all(type(n) is int and n >= 1 for n in value)
        and math.prod(value) <= _MOST
    )


#: What every header holds, and what each value has to be.
_REQUIRED: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "game": ("a text", _is_text),
    "mode": ("a text", _is_text),
    "levels": ("a text", _is_text),
    "encoder": ("a text", _is_text),
    "seed": ("a whole number", _is_count),
    "steps": ("a whole number", _is_count),
    "observation_shape": ("a shape", _is_shape),
    "n_actions": ("a number of actions", lambda value: _is_count(value) and 1 <= value <= _MOST),
    "content_hash": ("a hash", _is_text),
}

#: What a header may hold besides.
_OPTIONAL: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "budget": ("a text", _is_text),
    "blind": ("true or false", lambda value: type(value) is bool),
    HEADER_HASH: ("a hash", _is_text),
}


def read_checkpoint_file(path: Path) -> Checkpoint:
    """The checkpoint of a file, whose tensors and header match their hashes."""
    file = read_safetensors(path)
    header = _header(file, path)
    for name, kind in file.types.items():
        if kind not in _TYPES:
            raise PolicyError(
                f"{path} stores {name} as {kind}: the weights of a checkpoint are floats ({' or '.join(_TYPES)}), so "
                f"gapfloor did not write this file; load other weights with statedict:{path},net=package.module:Class."
            )
    if hash_contents(file.tensors, architecture(header)) != header["content_hash"]:
        raise PolicyError(f"{path} does not match the hash in its header: it was changed or damaged.")
    return Checkpoint(path, header, file.tensors)


def hash_header(header: Mapping[str, Any]) -> str:
    """The hash of a header without its own hash. It covers the tensors too, because the header holds their hash."""
    rest = {name: value for name, value in header.items() if name != HEADER_HASH}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _header(file: SafetensorsFile, path: Path) -> dict[str, Any]:
    try:
        header = json.loads(file.metadata.get(HEADER_KEY, "null"))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise PolicyError(
            f"{path} is not a gapfloor checkpoint, because it has no gapfloor header: load other weights with "
            f"statedict:{path},net=package.module:Class."
        )
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        raise PolicyError(f"The header of {path} lacks {', '.join(missing)}: gapfloor did not write it.")
    for name, (meaning, is_valid) in {**_REQUIRED, **_OPTIONAL}.items():
        if name in header and not is_valid(header[name]):
            raise PolicyError(
                f"The header of {path} gives {name} as {str(header[name])[:60]!r}, which is not {meaning}: the file "
                "was changed or damaged; copy it again."
            )
    if HEADER_HASH in header and header[HEADER_HASH] != hash_header(header):
        raise PolicyError(
            f"The header of {path} does not match its hash: a label (e.g. the levels, seed or steps) was changed after "
            "training, or the file is damaged."
        )
    return header
