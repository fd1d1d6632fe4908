"""Safetensors files read from bytes: the metadata and the tensors of one and the same content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.file_bytes import read_policy_file
from gapfloor.policies.formats.inference import missing_library


@dataclass(frozen=True)
class SafetensorsFile:
    """What a safetensors file holds."""

    metadata: Mapping[str, str]
    tensors: Mapping[str, Any]
    types: Mapping[str, str]
    """Each tensor's type as the format spells it, e.g. F32 or BF16."""


def read_safetensors(path: Path) -> SafetensorsFile:
    """The metadata and tensors of a file."""
    return parse_safetensors(read_policy_file(path), name=str(path))


def parse_safetensors(content: bytes, *, name: str) -> SafetensorsFile:
    """The metadata and tensors of a file's bytes; `name` is the file's name in a refusal.

    The library reads tensors from bytes but not their metadata, so the header is read here as well. A key that occurs
    twice is refused, because two readers could then see different headers.
    """
    try:
        from safetensors.torch import load
    except ImportError as error:
        raise missing_library(error) from None
    try:
        header = _header(content)
        metadata = {str(key): str(each) for key, each in header.pop("__metadata__", {}).items()}
        types = {key: str(each["dtype"]) for key, each in header.items()}
        tensors = load(content)
    except PolicyError:
        raise
    except Exception as error:  # the library raises many kinds for damaged headers
        raise PolicyError(
            f"{name} is not a safetensors file, or it is damaged ({type(error).__name__}: {str(error)[:200]}): copy or "
            "save it again."
        ) from None
    return SafetensorsFile(metadata, tensors, types)


def _header(content: bytes) -> dict[str, Any]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise ValueError("the header is cut off")
    header = json.loads(content[8 : 8 + length], object_pairs_hook=_without_repetition)
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    return header


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in the header")
    return found
