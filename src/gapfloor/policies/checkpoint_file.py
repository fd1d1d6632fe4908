"""A gapfloor checkpoint read from bytes: the file is opened once, so what is checked is what is loaded."""

from __future__ import annotations

from pathlib import Path

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.safetensors_file import read_safetensors
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.training.checkpoint import Checkpoint, check_contents
from gapfloor.training.checkpoint_header import parse_header

#: The types of weights that gapfloor writes: half precision in the checkpoints that `export_half` rounds.
_TYPES = ("F32", "F16")


def read_checkpoint_file(path: Path) -> Checkpoint:
    """The checkpoint of a file, whose tensors and header match their hashes."""
    file = read_safetensors(path)
    header = parse_header(file.metadata.get(HEADER_KEY), path=path)
    for name, kind in file.types.items():
        if kind not in _TYPES:
            raise PolicyError(
                f"{path} stores {name} as {kind}: the weights of a checkpoint are floats ({' or '.join(_TYPES)}), so "
                f"gapfloor did not write this file; load other weights with statedict:{path},net=package.module:Class."
            )
    return check_contents(Checkpoint(path, header, file.tensors))
