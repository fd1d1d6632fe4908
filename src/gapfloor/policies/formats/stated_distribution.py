"""Exported networks over real-valued actions, whose line states what their outputs are.

`onnx:actor.onnx,distribution=squashed,log_deviation=1`: output 0 (or `output=`) holds the means of a Gaussian through
tanh, output 1 the logarithms of its deviations. `distribution=` is gaussian, squashed, beta (`beta=` names the second
output) or action, for a network that returns the action itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gapfloor.actions.distributions import Beta, Deterministic, Gaussian, SquashedGaussian, as_floats
from gapfloor.errors import UsageError, unknown_name
from gapfloor.policies.formats.content_hash import extend_hash
from gapfloor.policies.formats.image_input import SECOND_OUTPUTS
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.protocol import copy_description

_KINDS = {"gaussian": Gaussian, "squashed": SquashedGaussian, "beta": Beta, "action": Deterministic}


class StatedPolicy:
    """A network whose outputs are the parameters of a stated distribution."""

    def __init__(self, policy: Any, *, kind: str, second: str) -> None:
        copy_description(policy, self)
        self.backend, self.device = policy.backend, policy.device
        self.fingerprint = extend_hash(policy.fingerprint, distribution=[kind, second])
        self._policy, self._kind, self._second = policy, kind, second

    def logits(self, observations: Any) -> Any:
        """The distribution of each row."""
        values = as_floats(self._policy.logits(observations))
        if not self._second:
            return Deterministic(values)
        first, second = np.split(values, 2, axis=1)
        if self._second == "log_deviation":
            second = np.exp(second)
        return _KINDS[self._kind](first, second)


def with_stated_distribution(policy: Any, spec: PolicySpec) -> Any:
    """The policy with the distribution that its line states; itself if it states none."""
    kind = spec.text("distribution")
    stated = [name for name in SECOND_OUTPUTS if spec.text(name) is not None]
    if kind is None:
        if stated:
            raise UsageError(f"The option {stated[0]} needs distribution=, e.g. distribution=gaussian.")
        return policy
    if kind not in _KINDS:
        raise unknown_name("distribution", kind, _KINDS)
    allowed = {"action": [], "beta": ["beta"]}.get(kind, ["deviation", "log_deviation"])
    if len(stated) != min(1, len(allowed)) or not set(stated) <= set(allowed):
        needed = " or ".join(f"{name}=1" for name in allowed) or "no second output"
        raise UsageError(
            f"distribution={kind} needs {needed}, but the line states {', '.join(stated) or 'none'}: name the number "
            "of the network's output."
        )
    return StatedPolicy(policy, kind=kind, second=stated[0] if stated else "")
