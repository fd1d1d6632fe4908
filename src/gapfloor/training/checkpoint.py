"""Checkpoints written, and loaded as agents: safetensors with a JSON header, so that loading one runs no code.

The header says what the weights are (game, mode, levels, encoder, seed, steps, hyperparameters, versions), with a
hash of the tensors and one of the header itself. It holds no time, host or path, so equal runs give equal files.
Tensors are named `encoder.*`, `policy.*` and `value.*`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from gapfloor.errors import PolicyError
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.records.run_identity import HEADER_KEY
from gapfloor.training.agent import Agent, lay_out_channels_last
from gapfloor.training.checkpoint_file import Checkpoint, architecture, hash_arrays, seal_header


def hash_contents(tensors: Mapping[str, torch.Tensor], encoder: str) -> str:
    """A sha256 over the encoder's name and every tensor's name, type, shape and bytes."""
    return hash_arrays({name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}, encoder)


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
