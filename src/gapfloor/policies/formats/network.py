"""What a network reads and returns, and torch networks as policies.

`transpose=yes` gives images as channels, height, width, and `scale=255` divides; without an option nothing is changed.
The first output (or `output=`) holds logits; networks of libraries say themselves what theirs are (`Readout`).

A format says three things about its networks: what they `read`, what they `compute`, and what the outputs are
(`readout`). Where the network keeps no memory, these three also make one ONNX graph (`graph_export`), which takes its
place. For networks with a memory (RecurrentPPO, CleanRL's agents with `lstm_state`, modules that take and return a
hidden state) the harness keeps the state and says which rows start an episode; those rows start from zeros, as in the
libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import map_arrays
from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.backends import repeatable, writeable
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.policy import copy_description

#: The least probability that an epsilon-greedy distribution gives an action: its logarithm must be finite.
LEAST_PROBABILITY = 1e-30


@dataclass(frozen=True)
class Readout:
    """What the outputs of a network are; calling it with them gives what a policy returns."""

    kind: str = "logits"
    """logits, values (of a DQN), categoricals, bernoulli, gaussian, squashed or action."""
    is_logarithm: bool = False
    """Whether the second output holds logarithms."""
    exploration: float = 0.0
    """How often a DQN takes any action."""
    bounds: tuple[Any, Any] | None = None
    """What the actions -1 and 1 stand for, where they are scaled."""

    def __call__(self, outputs: Sequence[npt.NDArray[np.float32]]) -> Any:
        """Logits, or a distribution over actions that are not numbered."""
        if self.kind == "logits":
            return outputs[0]
        if self.kind == "values":
            return self._epsilon_greedy(outputs[0])
        from gapfloor.actions import distributions as ours

        first = ours.as_floats(outputs[0])
        if self.kind == "categoricals":
            return ours.Categoricals(tuple(map(ours.as_floats, outputs)))
        if self.kind == "bernoulli":
            return ours.Categoricals(tuple(np.stack([0 * each, each], axis=1) for each in first.T))
        if self.kind == "action":
            if self.bounds is not None:
                low, high = self.bounds
                first = low + 0.5 * (first + 1.0) * (high - low)
            return ours.Deterministic(first)
        second = ours.as_floats(outputs[1])
        kind = ours.SquashedGaussian if self.kind == "squashed" else ours.Gaussian
        return kind(first, np.exp(second) if self.is_logarithm else second)

    def _epsilon_greedy(self, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logarithms of the probabilities with which a DQN plays."""
        n, n_actions = values.shape
        probabilities = np.full((n, n_actions), self.exploration / n_actions)
        probabilities[np.arange(n), values.argmax(axis=1)] += 1 - self.exploration
        logits: npt.NDArray[np.float32] = np.log(np.maximum(probabilities, LEAST_PROBABILITY)).astype(
            np.float32
        )
        return logits


@dataclass(frozen=True)
class NetworkForm:
    """What happens to each array of observations, and what the outputs are."""

    transpose: bool = False
    scale: float | None = None
    output: int | None = None
    """Which of the network's outputs holds the logits; None: the user does not say."""

    @classmethod
    def of(cls, spec: PolicySpec) -> NetworkForm:
        """The form that the options of a line describe."""
        text = spec.options.get("scale")
        try:
            scale = float(text) if text is not None else None
        except ValueError:
            scale = 0.0
        if scale is not None and not 0 < scale < np.inf:
            raise UsageError(f"The option scale={text} is not a number above 0: write scale=255.")
        transpose = spec.options.get("transpose", "no")
        if transpose not in ("yes", "no"):
            raise UsageError(f"The option transpose={transpose} is neither yes nor no: write transpose=yes.")
        return cls(transpose == "yes", scale, spec.whole_number("output", least=0))

    def apply(self, observations: Any) -> Any:
        """The observations as the network reads them: arrays, or tensors of torch."""
        return map_arrays(observations, self._apply)

    def _apply(self, each: Any) -> Any:
        is_array = isinstance(each, np.ndarray)
        if self.transpose and each.ndim == 4:
            each = each.transpose(0, 3, 1, 2) if is_array else each.permute(0, 3, 1, 2).contiguous()
        if self.scale is not None:
            each = each.astype(np.float32) / np.float32(self.scale) if is_array else each.float() / self.scale
        return writeable(each) if is_array else each

    def choose(self, outputs: Any, *, name: str) -> Any:
        """The output that holds the logits."""
        several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        number = self.output or 0
        if number >= len(several):
            raise PolicyError(
                f"{name} has {len(several)} output{'s' * (len(several) > 1)}, so there is no output={number}: they "
                "are counted from 0."
            )
        return several[number]

    def describe(self) -> dict[str, Any]:
        """The form as JSON holds it, for the content hash."""
        # With an option of version 0.2 that is gone: the hashes of policies stay as they were.
        return {
            "transpose": self.transpose, "scale": self.scale, "output": self.output or 0, "as_float": False
        }  # fmt: skip


def check_array(observations: Any, *, name: str) -> None:
    """Refuse a dict of observations where the policy reads one array."""
    if isinstance(observations, Mapping):
        raise PolicyError(
            f"{name} reads one array, not a dict of {', '.join(sorted(observations))}: add ,key=NAME to choose one."
        )


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
    def compute(self, inputs: Any, *memory: Any) -> tuple[Sequence[Any], Any]:
        """The network's outputs and its next state.

        A network with a memory is also given its state, and numbers that are 1 where an episode starts.
        """

    def logits(self, observations: Any) -> Any:
        """Logits of observations, or the parameters of a distribution over other spaces."""
        outputs = self.outputs(observations)  # first: the readout of some formats follows from them
        return self.readout(outputs)

    def outputs(self, observations: Any) -> list[npt.NDArray[np.float32]]:
        """The network's outputs as arrays."""
        with repeatable():
            return self.step(observations)[0]

    def step(self, observations: Any, *memory: Any) -> tuple[list[npt.NDArray[np.float32]], Any]:
        """The network's outputs as arrays, and its next state."""
        outputs, state = self.compute(self.read(self._tensors(observations)), *memory)
        return [each.detach().float().cpu().numpy() for each in outputs], state

    def exported(self, observations: Any) -> Any:
        """The same policy as an ONNX graph; itself where torch cannot write it or the graph computes something else."""
        from gapfloor.policies.graph_export import export_policy

        return export_policy(self, observations)

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
            outputs, state = self._policy.step(observations, state, starts)
        return self._policy.readout(outputs), state
