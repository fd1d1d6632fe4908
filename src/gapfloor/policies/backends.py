"""Which library computes the logits of networks: ONNX Runtime where it is installed, otherwise torch.

Both compute the same function, but they round differently, so the library and its version are part of a cell's key.
Checkpoints of gapfloor become graphs without torch (`encoder_graphs`), other torch networks are exported
(`graph_export`), and `onnx:` files are graphs already. Networks with a memory run in torch.
"""

from __future__ import annotations

import importlib.util

from gapfloor.errors import MissingExtraError, UsageError, unknown_name
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


def computes_graphs(asked: str | None, device: str) -> bool:
    """Whether networks run as ONNX graphs: by the backend asked for, or by the usual one."""
    if asked == ONNXRUNTIME and device != "cpu":
        raise UsageError(
            f"The backend onnxruntime runs networks on the CPU, not on '{device}': use --backend torch."
        )
    return (asked or usual_backend(device)) == ONNXRUNTIME


def _has_onnxruntime() -> bool:
    return all(importlib.util.find_spec(module) is not None for module in ("onnx", "onnxruntime"))
