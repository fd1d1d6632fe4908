"""CleanRL's reward normalisation, as an option: rewards over the deviation of the discounted return, clipped.

The paper's runs do not use it. It follows gym's `NormalizeReward` (batch updates of a running variance, count
starting at 1e-4) and a clip at 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

REWARD_CLIP = 10.0
_EPSILON = 1e-8


@dataclass
class RewardScale:
    """The running variance of discounted returns, and each slot's discounted return so far."""

    discounted: npt.NDArray[np.float64]
    mean: float = 0.0
    variance: float = 1.0
    count: float = 1e-4

    @classmethod
    def start(cls, n_slots: int) -> RewardScale:
        """The scale before any reward was seen."""
        return cls(np.zeros(n_slots))

    def scale(
        self, rewards: npt.NDArray[np.float32], firsts: npt.NDArray[np.bool_], *, discount: float
    ) -> npt.NDArray[np.float32]:
        """Take in one step's rewards and return them normalised and clipped."""
        self.discounted = self.discounted * discount + rewards
        self._take_in(self.discounted)
        self.discounted[firsts] = 0.0
        scaled = rewards / math.sqrt(self.variance + _EPSILON)
        return np.clip(scaled, -REWARD_CLIP, REWARD_CLIP).astype(np.float32)

    def _take_in(self, values: npt.NDArray[np.float64]) -> None:
        # The variance of two groups together (Chan, Golub and LeVeque 1979).
        n, total = len(values), self.count + len(values)
        shift = float(values.mean()) - self.mean
        spread = self.variance * self.count + float(values.var()) * n + shift**2 * self.count * n / total
        self.mean, self.variance, self.count = self.mean + shift * n / total, spread / total, total
