"""What a network reads and returns: the form of its inputs, which a line states, and what its outputs are.

`transpose=yes` gives images as channels, height, width, and `scale=255` divides; without an option nothing is changed.
The first output (or `output=`) holds logits; networks of libraries say themselves what theirs are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import map_arrays
from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.inference import writeable
from gapfloor.policies.formats.spec import PolicySpec

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
        text = spec.text("scale")
        try:
            scale = float(text) if text is not None else None
        except ValueError:
            scale = 0.0
        if scale is not None and not 0 < scale < np.inf:
            raise UsageError(f"The option scale={text} is not a number above 0: write scale=255.")
        return cls(spec.yes_or_no("transpose"), scale, spec.whole_number("output", least=0))

    def apply(self, observations: Any) -> Any:
        """The observations as the network reads them: arrays, or tensors of torch."""
        return map_arrays(observations, self._apply)

    def _apply(self, array: Any) -> Any:
        if not isinstance(array, np.ndarray):
            return self._apply_to_tensor(array)
        if self.transpose and array.ndim == 4:
            array = array.transpose(0, 3, 1, 2)
        if self.scale is not None:
            return writeable(array.astype(np.float32) / np.float32(self.scale))
        return writeable(array)

    def _apply_to_tensor(self, tensor: Any) -> Any:
        if self.transpose and tensor.ndim == 4:
            tensor = tensor.permute(0, 3, 1, 2).contiguous()
        return tensor if self.scale is None else tensor.float() / self.scale

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


def check_shape(observations: Any, *allowed: tuple[int, ...], name: str) -> None:
    """Refuse observations whose shape is none of those that the policy was trained on."""
    if isinstance(observations, Mapping):
        raise PolicyError(
            f"{name} reads one array, not a dict of {', '.join(sorted(observations))}: add ,key=NAME to choose one."
        )
    if tuple(observations.shape[1:]) not in allowed:
        raise PolicyError(
            f"{name} reads observations of shape {allowed[-1]}, not {tuple(observations.shape[1:])}: was it trained "
            "behind a wrapper, e.g. framestack=4?"
        )
