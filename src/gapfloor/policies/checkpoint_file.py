"""A gapfloor checkpoint read from bytes: the file is opened once, so what is checked is what is loaded.

The weights are read as numpy arrays, so that a process in which ONNX Runtime computes never imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.file_bytes import read_policy_file
from gapfloor.policies.formats.safetensors_file import parse_safetensors, parse_safetensors_header
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.training.checkpoint_header import check_content_hash, parse_header

if TYPE_CHECKING:
    from gapfloor.training.checkpoint import Checkpoint

#: The types of weights that gapfloor writes: half precision in the checkpoints that `export_half` rounds.
_TYPES = ("F32", "F16")


@dataclass(frozen=True)
class CheckpointArrays:
    """A checkpoint whose weights are numpy arrays."""

    path: Path
    header: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]


def read_checkpoint_arrays(path: Path) -> CheckpointArrays:
    """The checkpoint of a file, whose weights and header match their hashes."""
    content = read_policy_file(path)
    metadata, types = parse_safetensors_header(content, name=str(path))
    header = parse_header(metadata.get(HEADER_KEY), path=path)
    for name, kind in types.items():
        if kind not in _TYPES:
            raise PolicyError(
                f"{path} stores {name} as {kind}: the weights of a checkpoint are floats ({' or '.join(_TYPES)}), so "
                f"gapfloor did not write this file; load other weights with statedict:{path},net=package.module:Class."
            )
    arrays = parse_safetensors(content, name=str(path), library="numpy").tensors
    check_content_hash(arrays, header, path=path)
    return CheckpointArrays(path, header, arrays)


def with_torch_tensors(read: CheckpointArrays) -> Checkpoint:
    """The same checkpoint with torch's tensors."""
    import torch

    from gapfloor.training.checkpoint import Checkpoint

    tensors = {name: torch.from_numpy(array.copy()) for name, array in read.arrays.items()}
    return Checkpoint(read.path, read.header, tensors)
