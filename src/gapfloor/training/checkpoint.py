"""Checkpoints: safetensors with a JSON header that is checked field by field, so that loading one runs no code.

The header says what the weights are (game, mode, levels, encoder, seed, steps, hyperparameters, versions). It holds no
time, host or path, so equal runs give equal files. Tensors are named `encoder.*`, `policy.*` and `value.*`. A file is
opened once, so what is checked is what is loaded, and reading one does not import torch.

Two hashes are recorded. `content_hash` covers the tensors and identifies the policy. `header_hash` covers the whole
header, `content_hash` included, so that edited levels, seeds or steps are noticed too; checkpoints of version 0.1
have none and are still read. Both guard against damage and mistakes, not against forgery: neither is keyed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gapfloor import safetensors_bytes
from gapfloor.errors import PolicyError, UsageError, shortened
from gapfloor.input_files import read_policy_file
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.settings import parse_json

if TYPE_CHECKING:
    import torch

    from gapfloor.training.agent import Agent

FORMAT = "gapfloor-checkpoint/1"

#: The types of weights that gapfloor writes: half precision in copies for publication.
_TYPES = ("F32", "F16")

#: No image side, number of channels or number of actions of a checkpoint is larger than this.
_LARGEST_SIZE = 65_536


def hash_header(header: Mapping[str, Any]) -> str:
    """A sha256 over every field but the hash itself."""
    covered = {name: value for name, value in header.items() if name != "header_hash"}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def architecture(header: Mapping[str, Any]) -> str:
    """What the tensors mean: the encoder, and whether it sees anything."""
    return f"{header['encoder']} blind" if header.get("blind") else str(header["encoder"])


def hash_arrays(arrays: Mapping[str, npt.NDArray[Any]], encoder: str) -> str:
    """A sha256 over the encoder's name and every array's name, type, shape and bytes."""
    digest = hashlib.sha256(f"encoder {encoder}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {list(array.shape)}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def hash_contents(tensors: Mapping[str, torch.Tensor], encoder: str) -> str:
    """`hash_arrays` of torch's tensors."""
    return hash_arrays({name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}, encoder)


def write_checkpoint(path: Path, agent: Agent, header: Mapping[str, Any]) -> str:
    """Write the agent's weights with `header` to `path`, whole or not at all; the hash of its contents."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in agent.state_dict().items()}
    return write_weights(path, tensors, header)


def write_weights(path: Path, tensors: Mapping[str, torch.Tensor], header: Mapping[str, Any]) -> str:
    """Write tensors with `header` and both of its hashes to `path`; the hash of the contents."""
    content_hash = hash_contents(tensors, architecture(header))
    write_sealed(path, tensors, {"format": FORMAT, **header, "content_hash": content_hash})
    return content_hash


def write_sealed(path: Path, tensors: Mapping[str, torch.Tensor], header: Mapping[str, Any]) -> None:
    """Write a safetensors file whose header, which has a format and a `content_hash`, is hashed too."""
    from safetensors.torch import save

    text = json.dumps({**header, "header_hash": hash_header(header)}, sort_keys=True)
    write_bytes_atomically(path, save(dict(tensors), metadata={HEADER_KEY: text}))


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as read from disk."""

    path: Path
    header: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]


def read_header(path: Path) -> dict[str, Any]:
    """The header of a checkpoint, without its weights."""
    return _read(Path(path))[0]


def read_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint whose contents match its hash."""
    path = Path(path)
    header, content = _read(path)
    arrays = safetensors_bytes.parse_tensors(content, name=str(path), library="numpy")
    if hash_arrays(arrays, architecture(header)) != header["content_hash"]:
        raise PolicyError(f"{path} does not match the hash in its header: it was changed or damaged.")
    return Checkpoint(path, header, arrays)


def load_agent(checkpoint: Checkpoint) -> Agent:
    """The agent of a checkpoint, in evaluation layout (channels-last)."""
    import torch

    from gapfloor.training.agent import Agent, lay_out_channels_last

    header = checkpoint.header
    # The shapes are compared before memory is taken: a header can claim any size.
    with torch.device("meta"):
        try:
            agent = Agent(
                header["encoder"],
                observation_shape=tuple(header["observation_shape"]),
                n_actions=header["n_actions"],
                is_blind=bool(header.get("blind")),
            )
        except ValueError as error:
            raise PolicyError(f"{checkpoint.path} cannot be loaded: {error}.") from error
    expected = {name: tuple(t.shape) for name, t in agent.state_dict().items()}
    found = {name: tuple(t.shape) for name, t in checkpoint.arrays.items()}
    if expected != found:
        odd = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
        raise PolicyError(
            f"{checkpoint.path} does not hold the weights of an {header['encoder']} agent: {odd[0]} has the shape "
            f"{found.get(odd[0])}, not {expected.get(odd[0])}."
        )
    agent = lay_out_channels_last(agent.to_empty(device="cpu"))
    agent.load_state_dict({name: torch.tensor(array) for name, array in checkpoint.arrays.items()})
    return agent


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    content = read_policy_file(path)
    metadata, types = safetensors_bytes.parse_header(content, name=str(path))
    header = parse_header(metadata.get(HEADER_KEY), path=path)
    for name, kind in types.items():
        if kind not in _TYPES:
            raise PolicyError(
                f"{path} stores {name} as {kind}: the weights of a checkpoint are floats ({' or '.join(_TYPES)}), so "
                f"gapfloor did not write this file; load other weights with statedict:{path},net=package.module:Class."
            )
    return header, content


def parse_header(text: str | None, *, path: Path) -> dict[str, Any]:
    """The checked header of the checkpoint at `path`; refused where a field is missing, odd or was edited."""
    header = None if text is None else parse_json(text, source=f"The header of {path}", error=PolicyError)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise PolicyError(
            f"{path} is not a gapfloor checkpoint, because it has no gapfloor header: load other weights with "
            f"statedict:{path},net=package.module:Class."
        )
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        raise PolicyError(f"The header of {path} lacks {', '.join(missing)}: gapfloor did not write it.")
    for name, (is_valid, expected) in {**_REQUIRED, **_OPTIONAL}.items():
        if name in header and not is_valid(header[name]):
            raise PolicyError(
                f"The header of {path} gives {name} as {shortened(repr(header[name]), 60)}, which is not {expected}: "
                "the file was changed or damaged; copy it again."
            )
    recorded = header.get("header_hash")
    if recorded is not None and recorded != hash_header(header):
        raise PolicyError(
            f"The header of {path} does not match its hash: a label (e.g. the levels, seed or steps) was changed after "
            "training, or the file is damaged."
        )
    return header


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()


def _is_levels(value: Any) -> bool:
    with contextlib.suppress(UsageError):
        return _is_text(value) and bool(LevelSet.parse(value))
    return False


def _is_count(value: Any, *, least: int = 0, below: int = 2**63) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < below


def _is_size(value: Any) -> bool:
    return _is_count(value, least=1, below=_LARGEST_SIZE + 1)


_Check = tuple[Callable[[Any], bool], str]
_TEXT: _Check = (_is_text, "a name")
_COUNT: _Check = (_is_count, "a whole number of 0 or more")
_HASH: _Check = (
    lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None,
    "a sha256 in hexadecimal",
)

#: Fields that every checkpoint has, and those that some have.
_REQUIRED: dict[str, _Check] = {
    "game": _TEXT,
    "mode": _TEXT,
    "levels": (_is_levels, "a level set such as 0:200"),
    "encoder": _TEXT,
    "seed": _COUNT,
    "steps": _COUNT,
    "observation_shape": (
        lambda value: isinstance(value, list) and len(value) == 3 and all(map(_is_size, value)),
        "a list of height, width and channels",
    ),
    "n_actions": (_is_size, "a number of actions"),
    "content_hash": _HASH,
}
_OPTIONAL: dict[str, _Check] = {
    "budget": _TEXT,
    "budget_steps": _COUNT,
    "iteration": _COUNT,
    "n_updates": _COUNT,
    "blind": (lambda value: isinstance(value, bool), "true or false"),
    "rounded_from": _HASH,
    "header_hash": _HASH,
}
