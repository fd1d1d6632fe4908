"""Which library computes the logits of networks (ONNX Runtime where it is installed, otherwise torch), and repeatably.

Both compute the same function, but they round differently, so the library and its version are part of a cell's key.
Checkpoints of gapfloor become graphs without torch (`encoder_graphs`), other torch networks are exported
(`graph_export`), and `onnx:` files are graphs already. Networks with a memory run in torch. Both run on one thread, and
torch at a fixed batch shape, so that the logits of a row depend on that row alone.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np

from gapfloor.errors import MissingExtraError, UsageError, unknown_name
from gapfloor.machine import one_torch_thread
from gapfloor.policies.notes import note_once

ONNXRUNTIME, TORCH = "onnxruntime", "torch"
BACKENDS = (ONNXRUNTIME, TORCH)


def check_backend(name: str) -> None:
    """Refuse a backend that does not exist or is not installed."""
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


def require_torch(device: str, *, extra: str = "loaders") -> Any:
    """The torch module, with a device that it can use."""
    try:
        import torch
    except ImportError as error:
        raise missing_library(error, extra=extra) from None
    if torch.__version__ < "2.6":  # compared as versions, not as text; CVE-2025-32434
        raise MissingExtraError(
            f'A file of weights can run code in torch {torch.__version__}: pip install "torch>=2.6".'
        )
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise UsageError(f"torch cannot use the device '{device}' here: use --device cpu.")
    return torch


def missing_library(error: ImportError, *, extra: str = "loaders") -> MissingExtraError:
    """The error for a library that a loader needs, with the extra that brings it."""
    return MissingExtraError(f'Loading this policy needs {error.name}: pip install "gapfloor[{extra}]".')


@contextlib.contextmanager
def repeatable() -> Iterator[None]:
    """Inference mode on one thread: the number of threads changes the last bits of logits."""
    import torch

    with one_torch_thread(), torch.inference_mode():
        yield


def writeable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in C order and writeable, copied if necessary: torch warns about memory that is read-only."""
    if array.flags.c_contiguous and array.flags.writeable:
        return array
    return np.array(array, order="C")
