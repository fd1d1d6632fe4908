"""Networks that were never trained, as policies: `random-weights:ENCODER:SEED`.

The heads of a new agent are so small that sampling from it is almost uniform play. Its argmax is a fixed function of
the image, and that is the stricter reference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.policies.backends import TORCH, network_backend
from gapfloor.policies.formats.spec import RANDOM_WEIGHTS


def parse_random_weights(name: str) -> tuple[str, int]:
    """Encoder and seed of `random-weights:impala:3`."""
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != RANDOM_WEIGHTS or not parts[2].isdecimal():
        raise UsageError(
            f"'{name}' is not a random network: write {RANDOM_WEIGHTS}:ENCODER:SEED, e.g. {RANDOM_WEIGHTS}:impala:3."
        )
    return parts[1], int(parts[2])


def load_random_weights(name: str, *, device: str = "cpu", backend: str | None = None) -> Any:
    """The policy of a new agent for ProcGen's observations and actions."""
    encoder, seed = parse_random_weights(name)
    try:
        from gapfloor.engines.procgen import N_ACTIONS, OBSERVATION_SHAPE
        from gapfloor.policies.checkpoint import CheckpointPolicy
        from gapfloor.policies.graph_policy import GraphPolicy
        from gapfloor.training.agent import make_agent
        from gapfloor.training.checkpoint import hash_contents
        from gapfloor.training.streams import draw_seed
    except ImportError as error:
        raise MissingExtraError(
            f'Random networks need {error.name}: pip install "gapfloor[train]".'
        ) from None
    agent = make_agent(
        encoder,
        observation_shape=OBSERVATION_SHAPE,
        n_actions=N_ACTIONS,
        seed=draw_seed(seed, "initialisation"),
    )
    header = {
        "encoder": encoder,
        "seed": seed,
        "observation_shape": OBSERVATION_SHAPE,
        "n_actions": N_ACTIONS,
        "content_hash": hash_contents(agent.state_dict(), encoder),
    }
    if network_backend(backend, header, device=device, name=name) == TORCH:
        return CheckpointPolicy(agent, name=name, header=header, device=device)
    arrays = {key: tensor.detach().numpy() for key, tensor in agent.state_dict().items()}
    return GraphPolicy(arrays, name=name, header=header, path=Path(name))
