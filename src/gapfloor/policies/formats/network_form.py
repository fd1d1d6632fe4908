"""What a network reads and returns: the form of its inputs, which a line states, and what its outputs are.

`transpose=yes` gives images as channels, height, width, and `scale=255` divides; without an option nothing is changed.
`onnx:actor.onnx,distribution=squashed,log_deviation=1`: output 0 (or `output=`) holds the means of a Gaussian through
tanh, output 1 the logarithms of its deviations. `distribution=` is gaussian, squashed, or action for a network that
returns the action itself. Without it, the output holds logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import map_arrays
from gapfloor.errors import PolicyError, UsageError, unknown_name
from gapfloor.policies.formats.content_hash import extend_hash
from gapfloor.policies.formats.inference import writeable
from gapfloor.policies.formats.spec import PolicySpec

#: The options that name the second output of each distribution; exactly one of them is needed.
_SECOND_OUTPUTS = {
    "gaussian": ("deviation", "log_deviation"),
    "squashed": ("deviation", "log_deviation"),
    "action": (),
}

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
    second: int | None = None
    """Which output holds the second parameters of a stated distribution."""
    readout: Readout = field(default_factory=Readout)
    second_option: str = ""
    """The option that names the second output."""

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
        output, second_option = spec.whole_number("output", least=0), _second_option(spec)
        second = spec.whole_number(second_option, least=0)
        readout = Readout(spec.text("distribution") or "logits", second_option == "log_deviation")
        return cls(spec.yes_or_no("transpose"), scale, output, second, readout, second_option)

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

    def choose(self, outputs: Any, *, name: str) -> tuple[Any, ...]:
        """The outputs that hold the logits, or the parameters of the stated distribution."""
        several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        wanted = [each for each in (self.output or 0, self.second) if each is not None]
        for number in wanted:
            if number >= len(several):
                raise PolicyError(
                    f"{name} has {len(several)} output{'s' * (len(several) > 1)}, so there is no output={number}: they "
                    "are counted from 0."
                )
        return tuple(several[number] for number in wanted)

    def extend(self, fingerprint: str) -> str:
        """The content hash of a network together with the distribution that its line states."""
        if self.readout.kind == "logits":
            return fingerprint
        return extend_hash(fingerprint, distribution=[self.readout.kind, self.second_option])

    def describe(self) -> dict[str, Any]:
        """The form as JSON holds it, for the content hash."""
        # With an option of version 0.2 that is gone: the hashes of policies stay as they were.
        described = {"transpose": self.transpose, "scale": self.scale, "output": self.output or 0}
        return described | {"as_float": False} | ({} if self.second is None else {"second": self.second})


def _second_option(spec: PolicySpec) -> str:
    """The option that names the second output; refused where the stated distribution needs another."""
    kind = spec.text("distribution")
    every = dict.fromkeys(name for names in _SECOND_OUTPUTS.values() for name in names)
    stated = [name for name in every if spec.text(name) is not None]
    if kind is None:
        if stated:
            raise UsageError(f"The option {stated[0]} needs distribution=, e.g. distribution=gaussian.")
        return ""
    if kind not in _SECOND_OUTPUTS:
        raise unknown_name("distribution", kind, _SECOND_OUTPUTS)
    allowed = _SECOND_OUTPUTS[kind]
    if len(stated) != min(1, len(allowed)) or not set(stated) <= set(allowed):
        needed = " or ".join(f"{name}=1" for name in allowed) or "no second output"
        raise UsageError(
            f"distribution={kind} needs {needed}, but the line states {', '.join(stated) or 'none'}: name the number "
            "of the network's output."
        )
    return stated[0] if stated else ""
