"""Frame stacks: a policy that was trained on its last frames needs them again, so it becomes a policy with state.

There are two common ways of stacking, and the network sees something different in each, so each has its own option.
`framestack=4` is Stable-Baselines3's VecFrameStack: frames are joined along the channels (the last axis of
vectors), with zeros before an episode's first frame. `gymstack=4` is Gymnasium's FrameStackObservation, as in
CleanRL's Atari scripts: frames are stacked along a new first axis, and the first frame fills the stack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Frames = npt.NDArray[Any]
First = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FrameStack(ABC):
    """How the last `n` frames of each row become one observation."""

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
        return self._push(stack, observations, first)

    @abstractmethod
    def _push(self, stack: Frames | None, observations: Frames, first: First) -> Frames: ...


@dataclass(frozen=True)
class JoinedFrames(FrameStack):
    """Frames as VecFrameStack stacks them."""

    def _push(self, stack: Frames | None, observations: Frames, first: First) -> Frames:
        axis = 1 if _is_channels_first(observations) else observations.ndim - 1
        width = observations.shape[axis]
        if stack is None:
            older = np.zeros_like(np.concatenate([observations] * (self.n - 1), axis=axis))
        else:
            older = np.delete(stack, np.s_[:width], axis=axis)
            older[first] = 0
        return np.concatenate([older, observations], axis=axis)


@dataclass(frozen=True)
class SeparateFrames(FrameStack):
    """Frames as FrameStackObservation stacks them."""

    def _push(self, stack: Frames | None, observations: Frames, first: First) -> Frames:
        filled: Frames = np.repeat(observations[:, None], self.n, axis=1)
        if stack is None:
            return filled
        moved: Frames = np.concatenate([stack[:, 1:], observations[:, None]], axis=1)
        moved[first] = filled[first]
        return moved


def _is_channels_first(observations: Frames) -> bool:
    # VecFrameStack's own rule: the channels are the shortest of an image's three axes.
    is_image = observations.ndim == 4 and observations.dtype == np.uint8
    return is_image and int(np.argmin(observations.shape[1:])) == 0
