"""Which library computes the logits of gapfloor's own networks: ONNX Runtime where it is installed, otherwise torch.

Both compute the same function, but they round differently, so the library and its version are part of a cell's key.
Files of other libraries keep theirs: `sb3:` files run in torch and `onnx:` files in ONNX Runtime.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from gapfloor.errors import MissingExtraError, UsageError, unknown_name
from gapfloor.policies.encoder_graphs import has_graph
from gapfloor.policies.notes import note_once

ONNXRUNTIME, TORCH = "onnxruntime", "torch"
BACKENDS = (ONNXRUNTIME, TORCH)


def check_backend(name: str | None) -> None:
    """Refuse a backend that does not exist or is not installed; None leaves the choice to gapfloor."""
    if name is None:
        return
    if name not in BACKENDS:
        raise unknown_name("backend", name, BACKENDS)
    if name == ONNXRUNTIME and not _has_onnxruntime():
        raise MissingExtraError(
            'The backend onnxruntime needs onnx and onnxruntime: pip install "gapfloor[train]", or use --backend torch.'
        )


def usual_backend(device: str) -> str:
    """The backend of networks on a device, where neither the user nor the store names one."""
    if device != "cpu":
        return TORCH
    if _has_onnxruntime():
        return ONNXRUNTIME
    note_once(
        "ONNX Runtime is not installed, so torch computes logits, which takes about 1.5 times as long: pip install "
        '"gapfloor[train]".'
    )
    return TORCH


def network_backend(asked: str | None, header: Mapping[str, Any], *, device: str, name: str) -> str:
    """The backend of one network: the one asked for, or the usual one, but torch for an encoder without a graph."""
    backend = asked or usual_backend(device)
    if backend == TORCH:
        return TORCH
    if device != "cpu":
        raise UsageError(
            f"The backend onnxruntime runs networks on the CPU, not on '{device}': use --backend torch."
        )
    if has_graph(header):
        return ONNXRUNTIME
    note_once(f"Only torch can run the encoder {header['encoder']}, so it computes the logits of {name}.")
    return TORCH


def _has_onnxruntime() -> bool:
    return all(importlib.util.find_spec(module) is not None for module in ("onnx", "onnxruntime"))
