"""What was between the environment and the network during training, applied again before a loaded policy.

The order is that of the environment: one entry of a dict is chosen, then normalised or stacked. The shape of the
statistics tells whether normalisation came before or after stacking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.content_hash import extend_hash
from gapfloor.policies.formats.frame_stack import FrameStack, JoinedFrames, SeparateFrames
from gapfloor.policies.formats.normalisation import ObservationStatistics, read_statistics
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.policy import Policy, StatefulPolicy, copy_description


@dataclass(frozen=True)
class Preparation:
    """What happens to observations before the policy sees them."""

    key: str | None = None
    statistics: ObservationStatistics | None = None
    stack: FrameStack | None = None

    @property
    def is_empty(self) -> bool:
        """Whether observations reach the policy as they are."""
        return self.key is None and self.statistics is None and self.stack is None

    def extend(self, fingerprint: str) -> str:
        """The content hash of the policy together with this preparation."""
        return extend_hash(
            fingerprint,
            key=self.key,
            statistics=self.statistics.fingerprint if self.statistics else None,
            stack=[type(self.stack).__name__, self.stack.n] if self.stack else None,
        )

    def apply(self, observations: Any, frames: Any, first: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
        """The observations that the policy sees, and the stack of frames to keep."""
        observations = self.choose(observations)
        statistics = self.statistics
        before = statistics is not None and (self.stack is None or statistics.fit(observations))
        if statistics is not None and before:
            observations = statistics.normalise(observations)
        if self.stack is not None:
            observations = frames = self.stack.push(frames, observations, first)
        if statistics is not None and not before:
            observations = statistics.normalise(observations)
        return observations, frames

    def choose(self, observations: Any) -> Any:
        """The named entry of a dict of observations, or the observations themselves if none is named."""
        if self.key is None:
            return observations
        if not isinstance(observations, Mapping) or self.key not in observations:
            seen = ", ".join(sorted(observations)) if isinstance(observations, Mapping) else "one array"
            raise PolicyError(
                f"The observations have no entry '{self.key}': they are {seen}; name one of these with ,key=NAME."
            )
        return observations[self.key]


class _PreparedAttributes:
    """The attributes of a policy with a preparation."""

    def __init__(self, policy: Any, preparation: Preparation) -> None:
        self._policy, self._preparation = policy, preparation
        copy_description(policy, self)
        self.fingerprint = preparation.extend(policy.fingerprint)


class PreparedPolicy(_PreparedAttributes):
    """A policy without state, with a preparation that needs none."""

    def logits(self, observations: Any) -> Any:
        """Logits of the prepared observations."""
        prepared, _ = self._preparation.apply(observations, None, np.zeros(0, dtype=bool))
        return self._policy.logits(prepared)


class PreparedStatefulPolicy(_PreparedAttributes):
    """A policy with state: a stack of frames, the state of the policy itself, or both."""

    def __init__(self, policy: Any, preparation: Preparation) -> None:
        super().__init__(policy, preparation)
        self._has_state = isinstance(policy, StatefulPolicy)

    def initial_state(self, n: int) -> Any:
        """No frames yet, and the policy's own state."""
        return None, self._policy.initial_state(n) if self._has_state else None

    def logits(self, observations: Any, state: Any, first: npt.NDArray[np.bool_]) -> Any:
        """Logits of the prepared observations, and the next state."""
        frames, own = state
        prepared, frames = self._preparation.apply(observations, frames, np.asarray(first, dtype=bool))
        if not self._has_state:
            return self._policy.logits(prepared), (frames, None)
        logits, own = self._policy.logits(prepared, own, first)
        return logits, (frames, own)


def prepare(policy: Any, spec: PolicySpec) -> Policy | StatefulPolicy:
    """The policy with the preparation that the options name; itself if they name none."""
    statistics = spec.text("vecnormalize")
    preparation = Preparation(
        key=spec.text("key"),
        statistics=read_statistics(Path(statistics), is_trusted=spec.is_trusted) if statistics else None,
        stack=_stack(spec),
    )
    return with_preparation(policy, preparation)


def with_preparation(policy: Any, preparation: Preparation) -> Policy | StatefulPolicy:
    """The policy with a preparation; itself if the preparation is empty."""
    if preparation.is_empty:
        unprepared: Policy | StatefulPolicy = policy
        return unprepared
    if preparation.stack is not None or isinstance(policy, StatefulPolicy):
        return PreparedStatefulPolicy(policy, preparation)
    return PreparedPolicy(policy, preparation)


def _stack(spec: PolicySpec) -> FrameStack | None:
    joined, separate = spec.whole_number("framestack", least=2), spec.whole_number("gymstack", least=2)
    if joined and separate:
        raise UsageError(
            "framestack and gymstack are both given: use the one that the policy was trained with."
        )
    if joined:
        return JoinedFrames(joined)
    return SeparateFrames(separate) if separate else None
