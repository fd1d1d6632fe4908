"""Checkpoints: safetensors with a JSON header, so that loading one runs no code.

The header says what the weights are (game, mode, levels, encoder, seed, steps, hyperparameters, versions), with a
hash of the tensors and one of the header itself. It holds no time, host or path, so equal runs give equal files.
Tensors are named `encoder.*`, `policy.*` and `value.*`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from gapfloor.disk_errors import describe_disk_error
from gapfloor.errors import PolicyError
from gapfloor.input_files import check_input_file
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.training.agent import Agent, lay_out_channels_last
from gapfloor.training.checkpoint_header import (
    architecture,
    check_content_hash,
    hash_arrays,
    parse_header,
    seal_header,
)

#: Weights of other types are refused: gapfloor neither trains nor ships them, and rounding must not go unnoticed.
WEIGHT_TYPES = (torch.float16, torch.float32)

#: The longest header that is read; one written by gapfloor has a few kilobytes.
MOST_HEADER_BYTES = 10_000_000


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as read from disk."""

    path: Path
    header: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]


def hash_contents(tensors: Mapping[str, torch.Tensor], encoder: str) -> str:
    """A sha256 over the encoder's name and every tensor's name, type, shape and bytes."""
    return hash_arrays(_arrays(tensors), encoder)


def _arrays(tensors: Mapping[str, torch.Tensor]) -> dict[str, npt.NDArray[Any]]:
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def write_checkpoint(path: Path, agent: Agent, header: Mapping[str, Any]) -> str:
    """Write the agent's weights with `header` to `path`, whole or not at all; the hash of its contents."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in agent.state_dict().items()}
    return write_weights(path, tensors, header)


def write_weights(path: Path, tensors: Mapping[str, torch.Tensor], header: Mapping[str, Any]) -> str:
    """Write tensors with `header` and both of its hashes to `path`; the hash of the contents."""
    content_hash = hash_contents(tensors, architecture(header))
    sealed = seal_header({**header, "content_hash": content_hash})
    text = json.dumps(sealed, sort_keys=True)
    write_bytes_atomically(path, save(dict(tensors), metadata={HEADER_KEY: text}))
    return content_hash


def read_header(path: Path) -> dict[str, Any]:
    """The header of a checkpoint, without its tensors."""
    return _read(Path(path), with_tensors=False)[0]


def read_checkpoint(path: Path, *, game: str | None = None, encoder: str | None = None) -> Checkpoint:
    """A checkpoint whose contents match its hash and, where named, the game and the encoder asked for."""
    path = Path(path)
    header, tensors = _read(path, with_tensors=True)
    for kind, asked in (("game", game), ("encoder", encoder)):
        if asked is not None and header[kind] != asked:
            raise PolicyError(f"{path} was trained with the {kind} {header[kind]}, not {asked}.")
    check_content_hash(_arrays(tensors), header, path=path)
    return Checkpoint(path, header, tensors)


def load_agent(checkpoint: Checkpoint) -> Agent:
    """The agent of a checkpoint, in evaluation layout (channels-last)."""
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
    found = {name: tuple(t.shape) for name, t in checkpoint.tensors.items()}
    if expected != found:
        odd = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
        raise PolicyError(
            f"{checkpoint.path} does not hold the weights of an {header['encoder']} agent: {odd[0]} has the shape "
            f"{found.get(odd[0])}, not {expected.get(odd[0])}."
        )
    agent = lay_out_channels_last(agent.to_empty(device="cpu"))
    agent.load_state_dict(dict(checkpoint.tensors))
    return agent


def _read(path: Path, *, with_tensors: bool) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    check_input_file(path, error=PolicyError)
    try:
        with open(path, "rb") as file:
            # The file is read once, so that the header which is checked belongs to the tensors that are loaded.
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if length > MOST_HEADER_BYTES:
                raise ValueError("the header is too long")
            front = file.read(length)
            metadata = json.loads(front).get("__metadata__")
            header = parse_header((metadata or {}).get(HEADER_KEY), path=path)
            tensors = load(start + front + file.read()) if with_tensors else {}
    except (SafetensorError, ValueError, AttributeError, KeyError, RecursionError) as error:
        raise PolicyError(f"{path} is not a safetensors file ({error}).") from error
    except OSError as error:
        raise PolicyError(describe_disk_error(error, path) or f"{path} cannot be read ({error}).") from error
    for name, tensor in tensors.items():
        if tensor.dtype not in WEIGHT_TYPES:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise PolicyError(f"{path} holds {kind} values ({name}): convert the weights to float32 first.")
    return header, tensors
