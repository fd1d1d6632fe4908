"""Safetensors files read from bytes: the metadata and the tensors of one and the same content."""

from __future__ import annotations

import importlib
import json
from typing import Any

from gapfloor.errors import MissingExtraError, PolicyError
from gapfloor.json_values import without_repetition


def parse_tensors(content: bytes, *, name: str, library: str) -> dict[str, Any]:
    """The tensors of a file's bytes as those of `library` (torch or numpy); `name` is its name in a refusal."""
    parse_header(content, name=name)
    try:
        load = importlib.import_module(f"safetensors.{library}").load
    except ImportError as error:
        raise MissingExtraError(
            f'Loading this policy needs {error.name}: pip install "gapfloor[loaders]".'
        ) from None
    try:
        tensors: dict[str, Any] = load(content)
    except Exception as error:  # the library raises many kinds for damaged headers
        raise _damaged(name, error) from None
    return tensors


def parse_header(content: bytes, *, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """The metadata of a file's bytes, and each tensor's type as the format spells it, e.g. F32 or BF16.

    The library reads tensors from bytes but not their metadata, so the header is read here as well. A key that occurs
    twice is refused, because two readers could then see different headers.
    """
    try:
        length = int.from_bytes(content[:8], "little")
        if len(content) < 8 or length > len(content) - 8:
            raise ValueError("the header is cut off")
        header = json.loads(content[8 : 8 + length], object_pairs_hook=without_repetition)
        metadata = {str(key): str(each) for key, each in header.pop("__metadata__", {}).items()}
        return metadata, {key: str(each["dtype"]) for key, each in header.items()}
    except Exception as error:  # a damaged header can be wrong in any way
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> PolicyError:
    return PolicyError(
        f"{name} is not a safetensors file, or it is damaged ({type(error).__name__}: {str(error)[:200]}): copy or "
        "save it again."
    )
