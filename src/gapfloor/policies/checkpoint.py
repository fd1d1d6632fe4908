"""gapfloor's own networks as policies: a checkpoint, or a network that was never trained.

`random-weights:ENCODER:SEED` is a new network: its heads are so small that sampling from it is almost uniform play, but
its argmax is a fixed function of the image, and that is the stricter reference.

Loading runs no code. ONNX Runtime computes where it can (`backends`), and a process in which it does never imports
torch for a checkpoint. Both libraries run on one thread, and torch at a fixed batch shape, so that the logits of a row
depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.policies.backends import ONNXRUNTIME, TORCH, network_backend
from gapfloor.policies.encoder_graphs import agent_graph
from gapfloor.policies.formats.inference import check_frames, open_session, repeatable, require_torch
from gapfloor.policies.formats.spec import RANDOM_WEIGHTS
from gapfloor.records.run_identity import RunIdentity
from gapfloor.training.checkpoint_file import Checkpoint, hash_arrays, read_checkpoint

if TYPE_CHECKING:
    from gapfloor.training.agent import Agent

Frames = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


class _OwnNetwork:
    """What both libraries share; see `gapfloor.policies.policy.Policy`."""

    keeps_no_state = True

    def __init__(self, *, name: str, header: Mapping[str, Any], device: str) -> None:
        self.name, self.header, self.device = name, header, device
        self.fingerprint = str(header["content_hash"])

    def _checked(self, observations: Frames) -> Frames:
        return check_frames(observations, name=self.name, shape=tuple(self.header["observation_shape"]))


class CheckpointPolicy(_OwnNetwork):
    """A network of ours in torch."""

    backend = TORCH

    def __init__(self, agent: Agent, *, name: str, header: Mapping[str, Any], device: str) -> None:
        super().__init__(name=name, header=header, device=device)
        self._agent = agent.eval().to(device)

    def logits(self, observations: Frames) -> Floats:
        """Logits `[N, actions]` of uint8 observations `[N, height, width, channels]`."""
        return self._infer(observations, lambda features: self._agent.policy(features))

    def features(self, observations: Frames) -> Floats:
        """The encoder's output `[N, features]`, which both heads read."""
        return self._infer(observations, lambda features: features)

    def _infer(self, observations: Frames, head: Callable[[Any], Any]) -> Floats:
        import torch

        images = torch.from_numpy(self._checked(observations)).to(self.device)
        with repeatable():
            outputs: Floats = head(self._agent.encode(images)).cpu().numpy()
        return outputs


class GraphPolicy(_OwnNetwork):
    """A network of ours as an ONNX graph; a row's bits do not depend on the other rows or on their number."""

    backend = ONNXRUNTIME

    def __init__(
        self, arrays: Mapping[str, npt.NDArray[Any]], *, name: str, header: Mapping[str, Any], path: Path
    ) -> None:
        super().__init__(name=name, header=header, device="cpu")
        self._session = open_session(agent_graph(arrays, header, path=path))

    def logits(self, observations: Frames) -> Floats:
        """Logits `[N, actions]` of uint8 observations `[N, height, width, channels]`."""
        logits: Floats = self._session.run(None, {"observations": self._checked(observations)})[0]
        return logits


def load_network(path: Path, *, device: str = "cpu", backend: str | None = None) -> Any:
    """The policy of a checkpoint in the backend asked for, or in the one that `backends` chooses."""
    checkpoint = read_checkpoint(path)
    return _policy(checkpoint, RunIdentity.from_header(checkpoint.header).name, device, backend)


def load_checkpoint_policy(
    path: str | Path, *, device: str = "cpu", game: str | None = None, encoder: str | None = None
) -> CheckpointPolicy:
    """The policy of a checkpoint in torch; refused with both names if it is not of that game or encoder."""
    checkpoint = read_checkpoint(Path(path), game=game, encoder=encoder)
    return _in_torch(checkpoint, RunIdentity.from_header(checkpoint.header).name, device)


def load_random_weights(name: str, *, device: str = "cpu", backend: str | None = None) -> Any:
    """The policy of a new network for ProcGen's observations and actions."""
    encoder, seed = parse_random_weights(name)
    try:
        from gapfloor.engines.procgen import N_ACTIONS, OBSERVATION_SHAPE
        from gapfloor.training.agent import make_agent
        from gapfloor.training.streams import draw_seed
    except ImportError as error:
        raise MissingExtraError(
            f'Random networks need {error.name}: pip install "gapfloor[train]".'
        ) from None
    shape: dict[str, Any] = {"observation_shape": OBSERVATION_SHAPE, "n_actions": N_ACTIONS}
    agent = make_agent(encoder, **shape, seed=draw_seed(seed, "initialisation"))
    arrays = {key: tensor.detach().numpy() for key, tensor in agent.state_dict().items()}
    header = {"encoder": encoder, "seed": seed, **shape, "content_hash": hash_arrays(arrays, encoder)}
    return _policy(Checkpoint(Path(name), header, arrays), name, device, backend)


def parse_random_weights(name: str) -> tuple[str, int]:
    """Encoder and seed of `random-weights:impala:3`."""
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != RANDOM_WEIGHTS or not parts[2].isdecimal():
        raise UsageError(
            f"'{name}' is not a random network: write {RANDOM_WEIGHTS}:ENCODER:SEED, e.g. {RANDOM_WEIGHTS}:impala:3."
        )
    return parts[1], int(parts[2])


def _policy(checkpoint: Checkpoint, name: str, device: str, backend: str | None) -> Any:
    if network_backend(backend, checkpoint.header, device=device, name=name) == TORCH:
        return _in_torch(checkpoint, name, device)
    return GraphPolicy(checkpoint.arrays, name=name, header=checkpoint.header, path=checkpoint.path)


def _in_torch(checkpoint: Checkpoint, name: str, device: str) -> CheckpointPolicy:
    require_torch(device, extra="train")
    from gapfloor.training.checkpoint import load_agent

    return CheckpointPolicy(load_agent(checkpoint), name=name, header=checkpoint.header, device=device)
