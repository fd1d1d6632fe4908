"""Torch set up so that logits are repeatable: one thread, on the device that was asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.machine import one_torch_thread


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
