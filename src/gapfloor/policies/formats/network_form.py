"""How observations become the input of an exported network, which does not record what it was trained on.

The options are `transpose=yes` (images as channels, height, width) and `scale=255` (divide). Without an option nothing
is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.inference import writeable
from gapfloor.policies.formats.spec import PolicySpec

#: Options that name the second output of a stated distribution (`stated_distribution`).
SECOND_OUTPUTS = ("deviation", "log_deviation", "beta")


@dataclass(frozen=True)
class InputForm:
    """What happens to each array of observations."""

    transpose: bool = False
    scale: float | None = None
    output: int | None = None
    """Which of the network's outputs holds the logits; None: the user does not say."""
    second: int | None = None
    """Which output holds the second parameters of a stated distribution; they become further columns."""

    @classmethod
    def of(cls, spec: PolicySpec) -> InputForm:
        """The form that the options of a line describe."""
        text = spec.text("scale")
        try:
            scale = float(text) if text is not None else None
        except ValueError:
            scale = 0.0
        if scale is not None and not 0 < scale < np.inf:
            raise UsageError(f"The option scale={text} is not a number above 0: write scale=255.")
        output = spec.whole_number("output", least=0)
        stated = [spec.whole_number(name, least=0) for name in SECOND_OUTPUTS]
        second = next((number for number in stated if number is not None), None)
        return cls(spec.yes_or_no("transpose"), scale, output, second)

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
        first = self.output or 0
        wanted = [first] if self.second is None else [first, self.second]
        for number in wanted:
            if number >= len(several):
                raise PolicyError(
                    f"{name} has {len(several)} output{'s' * (len(several) > 1)}, so there is no output={number}: they "
                    "are counted from 0."
                )
        if self.second is None:
            return several[first]
        if hasattr(several[0], "detach"):
            import torch

            return torch.cat([several[number] for number in wanted], dim=1)
        return np.concatenate([several[number] for number in wanted], axis=1)

    def describe(self) -> dict[str, Any]:
        """The form as JSON holds it, for the content hash."""
        # With an option of version 0.2 that is gone: the hashes of policies stay as they were.
        described = asdict(self) | {"as_float": False, "output": self.output or 0}
        if self.second is None:
            del described["second"]
        return described
