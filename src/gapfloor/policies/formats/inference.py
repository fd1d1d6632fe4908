"""Torch and ONNX Runtime set up so that logits are repeatable: one thread, on the device that was asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gapfloor.errors import MissingExtraError, PolicyError, UsageError
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


def open_session(graph: bytes, *, provider: str = "CPUExecutionProvider", limits_memory: bool = False) -> Any:
    """A session of ONNX Runtime on one thread: the number of threads changes the last bits of logits."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are reported once, as ours
    # Otherwise the runtime may take bytes that were checked as ONNX for another format.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    if limits_memory:
        options.add_session_config_entry("session.use_env_allocators", "1")
    # With its fallback, the runtime would print to standard output and try the same again.
    return onnxruntime.InferenceSession(graph, options, providers=[provider], enable_fallback=0)


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


def check_frames(
    observations: np.ndarray[Any, Any], *, name: str, shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Images that an agent can read; others than uint8 of its `shape` are refused."""
    if observations.dtype != np.uint8 or observations.shape[1:] != shape:
        raise PolicyError(
            f"{name} reads uint8 observations of shape {shape}, not {observations.dtype} of "
            f"{observations.shape[1:]}: evaluate it in the game that it was trained on."
        )
    return writeable(observations)
