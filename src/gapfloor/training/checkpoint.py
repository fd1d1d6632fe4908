"""Checkpoints: safetensors with a JSON header, so that loading one runs no code.

The header says what the weights are (game, mode, levels, encoder, seed, steps, hyperparameters, versions) and
carries a hash of the contents; no time, host or path, so equal runs give equal files. Tensors are named
`encoder.*`, `policy.*` and `value.*`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from gapfloor.errors import PolicyError
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.training.agent import Agent, lay_out_channels_last

FORMAT = "gapfloor-checkpoint/1"
_REQUIRED = (
    "game",
    "mode",
    "levels",
    "encoder",
    "seed",
    "steps",
    "observation_shape",
    "n_actions",
    "content_hash",
)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as read from disk."""

    path: Path
    header: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]


def hash_contents(tensors: Mapping[str, torch.Tensor], encoder: str) -> str:
    """A sha256 over the encoder's name and every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(f"encoder {encoder}\n".encode())
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def architecture(header: Mapping[str, Any]) -> str:
    """What the tensors mean: the encoder, and whether it sees anything."""
    return f"{header['encoder']} blind" if header.get("blind") else str(header["encoder"])


def write_checkpoint(path: Path, agent: Agent, header: Mapping[str, Any]) -> str:
    """Write the agent's weights with `header` to `path`, whole or not at all; the hash of its contents."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in agent.state_dict().items()}
    content_hash = hash_contents(tensors, architecture(header))
    full = {"format": FORMAT, **header, "content_hash": content_hash}
    write_bytes_atomically(path, save(tensors, metadata={HEADER_KEY: json.dumps(full, sort_keys=True)}))
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
    if hash_contents(tensors, architecture(header)) != header["content_hash"]:
        raise PolicyError(f"{path} does not match the hash in its header: it was changed or damaged.")
    return Checkpoint(path, header, tensors)


def load_agent(checkpoint: Checkpoint) -> Agent:
    """The agent of a checkpoint, in evaluation layout (channels-last)."""
    header = checkpoint.header
    with torch.device("meta"):
        agent = Agent(
            header["encoder"],
            observation_shape=tuple(header["observation_shape"]),
            n_actions=header["n_actions"],
            is_blind=bool(header.get("blind")),
        )
    agent = lay_out_channels_last(agent.to_empty(device="cpu"))
    expected = {name: tuple(t.shape) for name, t in agent.state_dict().items()}
    found = {name: tuple(t.shape) for name, t in checkpoint.tensors.items()}
    if expected != found:
        odd = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
        raise PolicyError(
            f"{checkpoint.path} does not hold the weights of an {header['encoder']} agent: {odd[0]} has the shape "
            f"{found.get(odd[0])}, not {expected.get(odd[0])}."
        )
    agent.load_state_dict(dict(checkpoint.tensors))
    return agent


def _read(path: Path, *, with_tensors: bool) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    if not path.is_file():
        raise PolicyError(f"{path} is not a file: give the checkpoint.safetensors of a run.")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(HEADER_KEY)
            tensors = {name: file.get_tensor(name) for name in file.keys()} if with_tensors else {}  # noqa: SIM118
    except SafetensorError as error:
        raise PolicyError(f"{path} is not a safetensors file ({error}).") from error
    try:
        header = json.loads(text) if text is not None else None
    except json.JSONDecodeError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise PolicyError(
            f"{path} has no gapfloor header: load other weights through a factory, as examples/ shows."
        )
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        raise PolicyError(f"The header of {path} lacks {', '.join(missing)}: it was not written by gapfloor.")
    return header, tensors
