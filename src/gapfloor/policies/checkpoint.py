"""A gapfloor checkpoint as a policy: logits for observations, with the content hash that identifies it.

Loading runs no code. `load_network` uses ONNX Runtime where it can (`graph_policy`). In torch, inference runs
channels-last, in inference mode and with one thread, so that at a fixed batch shape the logits of a row depend on that
row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import MissingExtraError, PolicyError, UsageError
from gapfloor.policies.backends import TORCH, network_backend
from gapfloor.policies.checkpoint_file import CheckpointArrays, read_checkpoint_arrays, with_torch_tensors
from gapfloor.policies.formats.inference import check_frames, repeatable
from gapfloor.policies.graph_policy import GraphPolicy
from gapfloor.records.run_identity import RunIdentity

if TYPE_CHECKING:
    from gapfloor.training.agent import Agent


class CheckpointPolicy:
    """A trained agent; see `gapfloor.policies.protocol.Policy`."""

    backend = "torch"
    keeps_no_state = True

    def __init__(self, agent: Agent, *, name: str, header: Mapping[str, Any], device: str) -> None:
        self.name = name
        self.header = header
        self.device = device
        self.fingerprint = str(header["content_hash"])
        self._agent = agent.eval().to(device)
        self._shape = tuple(header["observation_shape"])

    def logits(self, observations: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Logits `[N, actions]` of uint8 observations `[N, height, width, channels]`."""
        return self._infer(observations, lambda features: self._agent.policy(features))

    def features(self, observations: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """The encoder's output `[N, features]`, which both heads read."""
        return self._infer(observations, lambda features: features)

    def _infer(
        self, observations: npt.NDArray[np.uint8], head: Callable[[Any], Any]
    ) -> npt.NDArray[np.float32]:
        import torch

        frames = check_frames(observations, name=self.name, shape=self._shape)
        images = torch.from_numpy(frames).to(self.device)
        with repeatable():
            outputs: npt.NDArray[np.float32] = head(self._agent.encode(images)).cpu().numpy()
        return outputs


def load_network(path: Path, *, device: str = "cpu", backend: str | None = None) -> Any:
    """The policy of a checkpoint in the backend asked for, or in the one that `backends` chooses."""
    checkpoint = read_checkpoint_arrays(path)
    name = RunIdentity.from_header(checkpoint.header).name
    if network_backend(backend, checkpoint.header, device=device, name=name) == TORCH:
        return _in_torch(checkpoint, device)
    return GraphPolicy(checkpoint.arrays, name=name, header=checkpoint.header, path=path)


def load_checkpoint_policy(
    path: str | Path, *, device: str = "cpu", game: str | None = None, encoder: str | None = None
) -> CheckpointPolicy:
    """The policy of a checkpoint in torch; refused with both names if it is not of that game or encoder."""
    checkpoint = read_checkpoint_arrays(Path(path))
    header = checkpoint.header
    for kind, asked in (("game", game), ("encoder", encoder)):
        if asked is not None and header[kind] != asked:
            raise PolicyError(f"{path} was trained with the {kind} {header[kind]}, not {asked}.")
    return _in_torch(checkpoint, device)


def _in_torch(checkpoint: CheckpointArrays, device: str) -> CheckpointPolicy:
    try:
        import torch

        from gapfloor.training.checkpoint import load_agent
        from gapfloor.training.workers import keep_freed_memory
    except ImportError as error:
        raise MissingExtraError(
            f'Loading a checkpoint needs {error.name}: pip install "gapfloor[train]".'
        ) from None
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise UsageError(f"torch cannot use the device '{device}' here: use --device cpu.")
    agent = load_agent(with_torch_tensors(checkpoint))
    keep_freed_memory()
    header = checkpoint.header
    return CheckpointPolicy(agent, name=RunIdentity.from_header(header).name, header=header, device=device)
