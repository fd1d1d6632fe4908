"""Torch networks exported as ONNX graphs: whatever a format's networks read and compute becomes one graph.

The graph is traced by torch's exporter from the module that the user gave, with the preparation of its inputs inside.
It is used only where it computes what torch computes, up to `TOLERANCE`: on the first observations of the game, on the
same rows in another order and number, on zeros and on numbers shuffled between rows. A network whose own code decides
by the numbers that it sees is not traced at all, because what it does with others would be lost. Otherwise torch
computes, and a note says so once.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import gapfloor
from gapfloor.engines.engine import map_arrays
from gapfloor.errors import PolicyError
from gapfloor.policies.graph import GraphPolicy
from gapfloor.policies.graph_writer import OPERATOR_SET
from gapfloor.policies.notes import first_line, note_once

if TYPE_CHECKING:
    from gapfloor.policies.formats.network import TorchPolicy

#: The largest difference between a graph's outputs and torch's, relative to the largest output (or 1): 15 networks were
#: within 1.3e-5.
TOLERANCE = 1e-4

#: Ways in which a number in a tensor becomes Python's own, so that code can decide by it.
_DECISIONS = frozenset(
    ("__bool__", "__int__", "__float__", "__index__", "__contains__", "item", "tolist", "numpy", "__array__", "equal",
     "allclose", "is_nonzero")
)  # fmt: skip


def export_policy(policy: TorchPolicy, observations: Any) -> GraphPolicy | TorchPolicy:
    """The policy as a graph, or itself where torch cannot write one that computes the same."""
    try:
        with _decisions_outside_torch() as decisions:
            expected = [(given, policy.outputs(given)) for given in _variations(observations)]
        if decisions:
            raise PolicyError(f"{decisions[0]} decides by the numbers in a tensor, which a graph cannot")
        graph = GraphPolicy(
            _trace(policy, observations),
            name=policy.name,
            header=policy.header,
            fingerprint=policy.fingerprint,
            readout=policy.readout,
        )
        worst = max(_difference(graph.outputs(given), outputs) for given, outputs in expected)
        if worst <= TOLERANCE:
            return graph
        reason = f"it computes other numbers there, by up to {worst:.2g}"
    except PolicyError as error:
        reason = str(error)
    except Exception as error:  # torch's exporter raises many kinds for what it does not know
        reason = f"{type(error).__name__}: {first_line(error, most=160)}"
    note_once(f"{policy.name} cannot run in ONNX Runtime, so torch computes its logits ({reason}).")
    return policy


@contextlib.contextmanager
def _decisions_outside_torch() -> Iterator[list[str]]:
    """The places in the code of others at which numbers left their tensors; torch itself only checks arguments so."""
    import torch
    from torch.overrides import TorchFunctionMode

    found: list[str] = []
    known = tuple(f"{Path(each).parent}{os.sep}" for each in (torch.__file__, gapfloor.__file__))

    class Watch(TorchFunctionMode):
        """Sees every call of torch, with the frame that made it."""

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(function, "__name__", "") in _DECISIONS:
                frame = sys._getframe(1)
                if not (file := frame.f_code.co_filename).startswith(known):
                    found.append(f"{Path(file).name}:{frame.f_lineno}")
            return function(*args, **(kwargs or {}))

    with Watch():
        yield found


def _trace(policy: TorchPolicy, observations: Any) -> bytes:
    """The ONNX file of what the policy reads and computes."""
    import torch

    named = observations if isinstance(observations, Mapping) else {"observations": observations}

    class Whole(torch.nn.Module):
        """From observations to outputs."""

        def __init__(self) -> None:
            super().__init__()
            self.network = policy.network

        def forward(self, *tensors: Any) -> Any:
            given = dict(zip(named, tensors, strict=True))
            inputs = given if isinstance(observations, Mapping) else tensors[0]
            return tuple(policy.compute(policy.read(inputs))[0])

    file: Any = io.BytesIO()
    tensors = tuple(torch.from_numpy(np.array(each)) for each in named.values())
    with warnings.catch_warnings(), torch.no_grad(), _silent_exporter():
        warnings.simplefilter("ignore")  # that values become constants; the comparison would show it
        torch.onnx.export(
            Whole().eval(), tensors, file, input_names=list(named), opset_version=OPERATOR_SET, dynamo=False,
            dynamic_axes={name: {0: "rows"} for name in named},
        )  # fmt: skip
    return bytes(file.getvalue())


@contextlib.contextmanager
def _silent_exporter() -> Iterator[None]:
    """No messages of the exporter inside the block.

    Where it fails, it prints the whole graph to standard output, which would break `--json`. Its own switch for that
    has no effect in torch 2.13, so the function that prints is replaced.
    """
    import torch

    logger, c_module = logging.getLogger("torch.onnx"), torch._C
    level, printing = logger.level, getattr(c_module, "_jit_onnx_log", None)
    logger.setLevel(logging.CRITICAL)
    if printing is not None:
        c_module._jit_onnx_log = lambda *_: None
    try:
        yield
    finally:
        logger.setLevel(level)
        if printing is not None:
            c_module._jit_onnx_log = printing


def _variations(observations: Any) -> Iterator[Any]:
    """Batches on which a graph must agree with torch: the branches and shapes that a trace would have frozen differ."""
    rng = np.random.Generator(np.random.Philox(key=0))
    arrays = map_arrays(observations, np.asarray)
    yield arrays
    yield map_arrays(arrays, lambda array: array[::-1].copy())
    yield map_arrays(arrays, lambda array: array[-1:].copy())
    yield map_arrays(arrays, np.zeros_like)
    yield map_arrays(
        arrays, lambda array: rng.permuted(array.reshape(len(array), -1), axis=0).reshape(array.shape)
    )


def _difference(found: list[npt.NDArray[Any]], expected: list[npt.NDArray[Any]]) -> float:
    """The largest difference of outputs, relative to the largest finite one (or 1); infinite where shapes differ."""
    worst = 0.0
    for mine, theirs in zip(found, expected, strict=True):
        if mine.shape != theirs.shape or not np.array_equal(np.isfinite(mine), np.isfinite(theirs)):
            return float("inf")
        finite = np.isfinite(theirs)
        scale = max(1.0, float(np.abs(theirs[finite]).max(initial=0.0)))
        worst = max(worst, float(np.abs(mine[finite] - theirs[finite]).max(initial=0.0)) / scale)
    return worst
