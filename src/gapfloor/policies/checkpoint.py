"""gapfloor's own networks as policies: a checkpoint, or a network that was never trained.

`random-weights:ENCODER:SEED` is a new network: its heads are so small that sampling from it is almost uniform play, but
its argmax is a fixed function of the image, and that is the stricter reference.

Loading runs no code. ONNX Runtime computes where it can (`backends`), and a process in which it does never imports
torch for a checkpoint. Both libraries run on one thread, and torch at a fixed batch shape, so that the logits of a row
depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import MissingExtraError, PolicyError, UsageError
from gapfloor.policies.backends import computes_graphs, repeatable, require_torch
from gapfloor.policies.formats.network import TorchPolicy
from gapfloor.policies.formats.spec import RANDOM_WEIGHTS
from gapfloor.policies.graph import GraphPolicy
from gapfloor.records.run_identity import RunIdentity
from gapfloor.training.checkpoint import Checkpoint, hash_arrays, read_checkpoint

if TYPE_CHECKING:
    from gapfloor.training.agent import Agent

Frames = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


class CheckpointPolicy(TorchPolicy):
    """A network of ours in torch."""

    keeps_no_state = True
    is_function_of_content = True

    def __init__(self, agent: Agent, *, name: str, header: Mapping[str, Any], device: str) -> None:
        super().__init__(
            agent, name=name, header=header, device=device, fingerprint=str(header["content_hash"])
        )

    def read(self, observations: Any) -> Any:
        kind, shape = str(observations.dtype).removeprefix("torch."), tuple(observations.shape[1:])
        wanted = tuple(self.header["observation_shape"])
        if kind != "uint8" or shape != wanted:
            raise PolicyError(
                f"{self.name} reads uint8 observations of shape {wanted}, not {kind} of {shape}: evaluate it in the "
                "game that it was trained on."
            )
        return observations

    def compute(self, inputs: Any, *memory: Any) -> tuple[Sequence[Any], Any]:
        return (self.network.policy(self.network.encode(inputs)),), None

    def features(self, observations: Frames) -> Floats:
        """The encoder's output `[N, features]`, which both heads read."""
        with repeatable():
            outputs: Floats = self.network.encode(self.read(self._tensors(observations))).cpu().numpy()
        return outputs


def load_network(path: str | Path, *, device: str = "cpu", backend: str | None = None) -> Any:
    """The policy of a checkpoint in the backend asked for, or in the one that `backends` chooses."""
    checkpoint = read_checkpoint(Path(path))
    return _policy(checkpoint, RunIdentity.from_header(checkpoint.header).name, device, backend)


def load_random_weights(name: str, *, device: str = "cpu", backend: str | None = None) -> Any:
    """The policy of a new network for ProcGen's observations and actions: `random-weights:impala:3`."""
    _, _, rest = name.partition(f"{RANDOM_WEIGHTS}:")
    encoder, _, number = rest.partition(":")
    if not number.isdecimal():
        raise UsageError(
            f"'{name}' is not a random network: write {RANDOM_WEIGHTS}:ENCODER:SEED, e.g. {RANDOM_WEIGHTS}:impala:3."
        )
    try:
        from gapfloor.engines.procgen import N_ACTIONS, OBSERVATION_SHAPE
        from gapfloor.training.agent import make_agent
        from gapfloor.training.streams import draw_seed
    except ImportError as error:
        raise MissingExtraError(
            f'Random networks need {error.name}: pip install "gapfloor[train]".'
        ) from None
    shape: dict[str, Any] = {"observation_shape": OBSERVATION_SHAPE, "n_actions": N_ACTIONS}
    seed = int(number)
    agent = make_agent(encoder, **shape, seed=draw_seed(seed, "initialisation"))
    arrays = {key: tensor.detach().numpy() for key, tensor in agent.state_dict().items()}
    header = {"encoder": encoder, "seed": seed, **shape, "content_hash": hash_arrays(arrays, encoder)}
    return _policy(Checkpoint(Path(name), header, arrays), name, device, backend)


def _policy(checkpoint: Checkpoint, name: str, device: str, backend: str | None) -> Any:
    header = checkpoint.header
    if computes_graphs(backend, device):
        from gapfloor.policies.encoder_graphs import agent_graph, has_graph

        if has_graph(header):
            graph = agent_graph(checkpoint.arrays, header, path=checkpoint.path)
            return GraphPolicy(graph, name=name, header=header, fingerprint=str(header["content_hash"]))
    require_torch(device, extra="train")
    from gapfloor.training.checkpoint import load_agent

    return CheckpointPolicy(load_agent(checkpoint), name=name, header=header, device=device)
