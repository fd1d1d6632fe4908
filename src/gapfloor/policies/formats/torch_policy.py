"""Torch networks as policies: tensors in, one call of the network, and its outputs as logits or a distribution.

A format says three things about its networks: what they `read`, what they `compute`, and what the outputs are
(`readout`). Where the network keeps no memory, these three also make one ONNX graph (`graph_export`), which takes its
place. For networks with a memory (RecurrentPPO, CleanRL's agents with `lstm_state`, modules that take and return a
hidden state) the harness keeps the state and says which rows start an episode; those rows start from zeros, as in the
libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import map_arrays
from gapfloor.policies.formats.inference import repeatable, writeable
from gapfloor.policies.formats.network_form import Readout
from gapfloor.policies.policy import copy_description


class TorchPolicy(ABC):
    """A network without state; see `gapfloor.policies.policy.Policy`."""

    backend = "torch"
    readout = Readout()
    """What the outputs are; some formats know it once they have been computed."""

    def __init__(
        self, network: Any, *, name: str, header: Mapping[str, Any], device: str, fingerprint: str = ""
    ) -> None:
        self.name, self.header, self.device, self.fingerprint = name, header, device, fingerprint
        self.network = network.to(device).eval()

    @abstractmethod
    def read(self, observations: Any) -> Any:
        """What the network is given; observations are a tensor, or a dict of them, as the environment has them."""

    @abstractmethod
    def compute(self, inputs: Any) -> Sequence[Any]:
        """The network's outputs."""

    def compute_next(self, inputs: Any, state: Any, starts: Any) -> tuple[Sequence[Any], Any]:
        """The outputs and the next state of a network with a memory; `starts` is 1 where an episode starts."""
        raise NotImplementedError

    def logits(self, observations: Any) -> Any:
        """Logits of observations, or the parameters of a distribution over other spaces."""
        outputs = self.outputs(observations)  # first: the readout of some formats follows from them
        return self.readout(outputs)

    def outputs(self, observations: Any) -> list[npt.NDArray[np.float32]]:
        """The network's outputs as arrays."""
        with repeatable():
            return [_array(each) for each in self.compute(self.read(self._tensors(observations)))]

    def step(self, observations: Any, state: Any, starts: Any) -> tuple[Any, Any]:
        """What `logits` returns and the next state, for a network with a memory."""
        outputs, state = self.compute_next(self.read(self._tensors(observations)), state, starts)
        return self.readout([_array(each) for each in outputs]), state

    def exported(self, observations: Any) -> Any:
        """The same policy as an ONNX graph; itself where torch cannot write it or the graph computes something else."""
        from gapfloor.policies.graph_export import export_policy

        return export_policy(self, observations) or self

    def _tensors(self, observations: Any) -> Any:
        import torch

        return map_arrays(
            observations, lambda array: torch.from_numpy(writeable(np.asarray(array))).to(self.device)
        )


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
