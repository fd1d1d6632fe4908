"""What an exported network reads and returns, which its file does not record: the line states it.

`transpose=yes` gives images as channels, height, width, and `scale=255` divides; without an option nothing is changed.
`onnx:actor.onnx,distribution=squashed,log_deviation=1`: output 0 (or `output=`) holds the means of a Gaussian through
tanh, output 1 the logarithms of its deviations. `distribution=` is gaussian, squashed, beta (`beta=` names the second
output) or action, for a network that returns the action itself. Without it, the output holds logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError, unknown_name
from gapfloor.policies.formats.content_hash import extend_hash
from gapfloor.policies.formats.inference import writeable
from gapfloor.policies.formats.spec import PolicySpec

#: The options that name the second output of each distribution; exactly one of them is needed.
_SECOND_OUTPUTS = {
    "gaussian": ("deviation", "log_deviation"),
    "squashed": ("deviation", "log_deviation"),
    "beta": ("beta",),
    "action": (),
}


@dataclass(frozen=True)
class NetworkForm:
    """What happens to each array of observations, and what the outputs are."""

    transpose: bool = False
    scale: float | None = None
    output: int | None = None
    """Which of the network's outputs holds the logits; None: the user does not say."""
    second: int | None = None
    """Which output holds the second parameters of a stated distribution; they become further columns."""
    distribution: str | None = None
    """The stated distribution, and the option that names its second output."""
    second_option: str = ""

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
        kind = spec.text("distribution")
        return cls(spec.yes_or_no("transpose"), scale, output, second, kind, second_option)

    def apply(self, observations: Any) -> Any:
        """The observations as the network reads them."""
        if isinstance(observations, Mapping):
            return {key: self._apply(each) for key, each in observations.items()}
        return self._apply(observations)

    def _apply(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if self.transpose and array.ndim == 4:
            array = array.transpose(0, 3, 1, 2)
        if self.scale is not None:
            return writeable(array.astype(np.float32) / np.float32(self.scale))
        return writeable(array)

    def choose(self, outputs: Any, *, name: str) -> Any:
        """The output that holds the logits."""
        if self.second is None and not isinstance(outputs, (tuple, list)):
            return outputs
        several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        wanted = [each for each in (self.output or 0, self.second) if each is not None]
        for number in wanted:
            if number >= len(several):
                raise PolicyError(
                    f"{name} has {len(several)} output{'s' * (len(several) > 1)}, so there is no output={number}: they "
                    "are counted from 0."
                )
        if len(wanted) == 1:
            return several[wanted[0]]
        if hasattr(several[0], "detach"):
            import torch

            return torch.cat([several[number] for number in wanted], dim=1)
        return np.concatenate([several[number] for number in wanted], axis=1)

    def policy_output(self, values: npt.NDArray[np.float32]) -> Any:
        """The chosen columns as what a policy returns: logits, or the stated distribution."""
        if self.distribution is None:
            return values
        from gapfloor.actions.distributions import Beta, Deterministic, Gaussian, SquashedGaussian, as_floats

        if self.distribution == "action":
            return Deterministic(as_floats(values))
        first, second = np.split(as_floats(values), 2, axis=1)
        if self.second_option == "log_deviation":
            second = np.exp(second)
        kinds = {"gaussian": Gaussian, "squashed": SquashedGaussian, "beta": Beta}
        return kinds[self.distribution](first, second)

    def extend(self, fingerprint: str) -> str:
        """The content hash of a network together with the distribution that its line states."""
        if self.distribution is None:
            return fingerprint
        return extend_hash(fingerprint, distribution=[self.distribution, self.second_option])

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
