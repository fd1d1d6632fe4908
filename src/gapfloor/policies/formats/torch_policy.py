"""Torch networks as policies: tensors in, one call of the network, and its outputs as logits or a distribution.

A format says three things about its networks: what they `read`, what they `compute`, and how their outputs `describe`
an action. For networks with a memory (RecurrentPPO, CleanRL's agents with `lstm_state`, modules that take and return a
hidden state) the harness keeps the state and says which rows start an episode; those rows start from zeros, as in the
libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.formats.inference import repeatable
from gapfloor.policies.policy import copy_description


class TorchPolicy(ABC):
    """A network without state; see `gapfloor.policies.policy.Policy`."""

    backend = "torch"

    def __init__(
        self, network: Any, *, name: str, header: Mapping[str, Any], device: str, fingerprint: str = ""
    ) -> None:
        self.name, self.header, self.device, self.fingerprint = name, header, device, fingerprint
        self._network = network.to(device).eval()

    @abstractmethod
    def read(self, observations: Any) -> Any:
        """The observations as tensors on the device: one, or a dict of them."""

    @abstractmethod
    def compute(self, inputs: Any) -> Sequence[Any]:
        """The network's outputs."""

    def compute_next(self, inputs: Any, state: Any, starts: Any) -> tuple[Sequence[Any], Any]:
        """The outputs and the next state of a network with a memory; `starts` is 1 where an episode starts."""
        raise NotImplementedError

    def describe(self, outputs: Sequence[npt.NDArray[np.float32]]) -> Any:
        """The outputs as what a policy returns; most are logits."""
        return outputs[0]

    def logits(self, observations: Any) -> Any:
        """Logits of observations, or the parameters of a distribution over other spaces."""
        with repeatable():
            outputs = [_array(each) for each in self.compute(self.read(observations))]
        return self.describe(outputs)

    def step(self, observations: Any, state: Any, starts: Any) -> tuple[Any, Any]:
        """The same and the next state, for a network with a memory."""
        outputs, state = self.compute_next(self.read(observations), state, starts)
        return self.describe([_array(each) for each in outputs]), state


class RecurrentPolicy:
    """A network with a memory; see `gapfloor.policies.policy.StatefulPolicy`.

    It holds the policy instead of inheriting: the harness tells the two kinds apart by their methods.
    """

    device: str
    fingerprint: str

    def __init__(self, policy: TorchPolicy, *, layers: int = 0, size: int = 0) -> None:
        copy_description(policy, self)
        self._policy, self._layers, self._size = policy, layers, size

    def initial_state(self, n: int) -> Any:
        """Hidden and cell state of `n` rows: zeros; None where the network makes its first state itself."""
        import torch

        shape = (self._layers, n, self._size)
        return tuple(torch.zeros(shape, device=self.device) for _ in range(2)) if self._size else None

    def logits(self, observations: Any, state: Any, first: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
        """Logits and the next state; rows where `first` is true start from a new state."""
        import torch

        with repeatable():
            starts = torch.as_tensor(np.asarray(first, dtype=np.float32), device=self.device)
            return self._policy.step(observations, state, starts)


def _array(tensor: Any) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array
