"""What was between the environment and the network during training, applied again before a loaded policy.

The order is that of the environment: one entry of a dict is chosen, then normalised or stacked. The shape of the
statistics tells whether normalisation came before or after stacking.

There are three common ways of stacking frames, and the network sees something different in each. `framestack=4` is
Stable-Baselines3's VecFrameStack: frames are joined along the channels (the last axis of vectors), with zeros before an
episode's first frame. `repeatstack=4` joins them in the same way, but the first frame fills the stack. `gymstack=4` is
Gymnasium's FrameStackObservation, as in CleanRL's Atari scripts: frames are stacked along a new first axis, and the
first frame fills the stack. A policy with a stack is a policy with state.
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
from gapfloor.policies.formats.normalisation import ObservationStatistics, read_statistics
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.notes import note_once
from gapfloor.policies.policy import Policy, StatefulPolicy, copy_description

Frames = npt.NDArray[Any]
First = npt.NDArray[np.bool_]

#: Each way of stacking, as the option is called, and its name in content hashes.
STACKS = {"framestack": "JoinedFrames", "gymstack": "SeparateFrames", "repeatstack": "RepeatedFrames"}


@dataclass(frozen=True)
class FrameStack:
    """How the last `n` frames of each row become one observation."""

    way: str
    """One of `STACKS`."""
    n: int

    def push(self, stack: Any, observations: Any, first: First) -> Any:
        """The stacked observations after one more step; `stack` is what the previous step returned, or None."""
        if isinstance(observations, Mapping):
            return {
                key: self.push(stack[key] if stack is not None else None, each, first)
                for key, each in observations.items()
            }
        if observations.ndim == 1:  # numbers and texts, which neither library stacks
            return observations
        frames, axis = observations, 1
        if self.way == "gymstack":
            frames = observations[:, None]
        elif not _is_channels_first(observations):
            axis = observations.ndim - 1
        if stack is None:
            stack, first = np.concatenate([frames] * self.n, axis=axis), np.ones(len(frames), dtype=bool)
        older = np.delete(stack, np.s_[: frames.shape[axis]], axis=axis)
        older[first] = 0
        if self.way != "framestack":
            older[first] = np.concatenate([frames[first]] * (self.n - 1), axis=axis)
        return np.concatenate([older, frames], axis=axis)


def _is_channels_first(observations: Frames) -> bool:
    # VecFrameStack's own rule: the channels are the shortest of an image's three axes.
    is_image = observations.ndim == 4 and observations.dtype == np.uint8
    return is_image and int(np.argmin(observations.shape[1:])) == 0


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
            stack=[STACKS[self.stack.way], self.stack.n] if self.stack else None,
        )

    def apply(self, observations: Any, frames: Any, first: First) -> tuple[Any, Any]:
        """The observations that the policy sees, and the stack of frames to keep."""
        if self.key is not None:
            if not isinstance(observations, Mapping) or self.key not in observations:
                seen = ", ".join(sorted(observations)) if isinstance(observations, Mapping) else "one array"
                raise PolicyError(
                    f"The observations have no entry '{self.key}': they are {seen}; name one of these with ,key=NAME."
                )
            observations = observations[self.key]
        statistics = self.statistics
        before = statistics is not None and (self.stack is None or statistics.fit(observations))
        if statistics is not None and before:
            observations = statistics.normalise(observations)
        if self.stack is not None:
            observations = frames = self.stack.push(frames, observations, first)
        if statistics is not None and not before:
            observations = statistics.normalise(observations)
        return observations, frames


#: Which rows start an episode, where no frames are kept so that nobody asks.
_NONE_FIRST: First = np.zeros(0, dtype=bool)


class PreparedPolicy:
    """A policy without state, with a preparation that needs none."""

    def __init__(self, policy: Any, preparation: Preparation) -> None:
        self._policy, self._preparation = policy, preparation
        copy_description(policy, self)
        self.fingerprint = preparation.extend(policy.fingerprint)

    def logits(self, observations: Any) -> Any:
        """Logits of the prepared observations."""
        prepared, _ = self._preparation.apply(observations, None, _NONE_FIRST)
        return self._policy.logits(prepared)

    def exported(self, observations: Any) -> Any:
        """The same with the policy as an ONNX graph, where it can be one."""
        if not hasattr(self._policy, "exported"):
            return self
        prepared, _ = self._preparation.apply(observations, None, _NONE_FIRST)
        return type(self)(self._policy.exported(prepared), self._preparation)


class PreparedStatefulPolicy(PreparedPolicy):
    """A policy with state: a stack of frames, the state of the policy itself, or both."""

    def initial_state(self, n: int) -> Any:
        """No frames yet, and the policy's own state."""
        own = self._policy.initial_state(n) if isinstance(self._policy, StatefulPolicy) else None
        return None, own

    def logits(self, observations: Any, state: Any, first: First) -> Any:  # type: ignore[override]
        """Logits of the prepared observations, and the next state."""
        frames, own = state
        prepared, frames = self._preparation.apply(observations, frames, np.asarray(first, dtype=bool))
        if own is None:
            return self._policy.logits(prepared), (frames, None)
        logits, own = self._policy.logits(prepared, own, first)
        return logits, (frames, own)


def prepare(policy: Any, spec: PolicySpec) -> Policy | StatefulPolicy:
    """The policy with the preparation that the options name; itself if they name none."""
    statistics = spec.text("vecnormalize")
    if statistics is None:
        _suspect_statistics(spec)
    stacks = [FrameStack(way, n) for way in STACKS if (n := spec.whole_number(way, least=2))]
    if len(stacks) > 1:
        raise UsageError(
            f"{stacks[0].way} and {stacks[1].way} are both given: use the one that the policy was trained with."
        )
    preparation = Preparation(
        key=spec.text("key"),
        statistics=read_statistics(Path(statistics)) if statistics else None,
        stack=stacks[0] if stacks else None,
    )
    return with_preparation(policy, preparation)


def _suspect_statistics(spec: PolicySpec) -> None:
    """Say once that statistics lie next to a model although the line does not name them."""
    folder = spec.path.parent
    for found in (*sorted(folder.glob("*.pkl")), folder / spec.path.stem / "vecnormalize.pkl"):
        if "normalize" in found.name.lower() and found.is_file():
            note_once(
                f"{found} lies next to {spec.path}, but the line does not name it: if the policy was trained with "
                f"VecNormalize, add ,vecnormalize={found}, because without it the policy is another one."
            )
            return


def with_preparation(policy: Any, preparation: Preparation) -> Policy | StatefulPolicy:
    """The policy with a preparation; itself if the preparation is empty."""
    if preparation.is_empty:
        unprepared: Policy | StatefulPolicy = policy
        return unprepared
    if preparation.stack is not None or isinstance(policy, StatefulPolicy):
        return PreparedStatefulPolicy(policy, preparation)
    return PreparedPolicy(policy, preparation)
