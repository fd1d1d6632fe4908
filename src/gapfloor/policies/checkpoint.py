"""A gapfloor checkpoint as a policy: logits for observations, with the content hash that identifies it.

Loading runs no code. Inference runs channels-last, in torch's inference mode and with one thread, so that at a
fixed batch shape the logits of a row depend on that row alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import MissingExtraError, PolicyError, UsageError
from gapfloor.policies.formats.inference import repeatable, writeable
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

        images = torch.from_numpy(self._check(observations)).to(self.device)
        with repeatable():
            outputs: npt.NDArray[np.float32] = head(self._agent.encode(images)).cpu().numpy()
        return outputs

    def _check(self, observations: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        if observations.dtype != np.uint8 or observations.shape[1:] != self._shape:
            raise PolicyError(
                f"{self.name} reads uint8 observations of shape {self._shape}, not {observations.dtype} of "
                f"{observations.shape[1:]}: evaluate it in the game that it was trained on."
            )
        return writeable(observations)


def load_checkpoint_policy(
    path: str | Path, *, device: str = "cpu", game: str | None = None, encoder: str | None = None
) -> CheckpointPolicy:
    """The policy of a checkpoint; refused with both names if it is not of that game or encoder."""
    try:
        import torch

        from gapfloor.policies.checkpoint_file import read_checkpoint_file
        from gapfloor.training.checkpoint import load_agent
        from gapfloor.training.workers import keep_freed_memory
    except ImportError as error:
        raise MissingExtraError(
            f'Loading a checkpoint needs {error.name}: pip install "gapfloor[train]".'
        ) from None
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise UsageError(f"torch cannot use the device '{device}' here: use --device cpu.")
    checkpoint = read_checkpoint_file(Path(path))
    header = checkpoint.header
    for kind, asked in (("game", game), ("encoder", encoder)):
        if asked is not None and header[kind] != asked:
            raise PolicyError(f"{path} was trained with the {kind} {header[kind]}, not {asked}.")
    agent = load_agent(checkpoint)
    keep_freed_memory()
    name = RunIdentity.from_header(header).name
    return CheckpointPolicy(agent, name=name, header=header, device=device)
