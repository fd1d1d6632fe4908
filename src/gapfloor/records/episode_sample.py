"""The episodes of one run (or the floor) under one rule on one level set, as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: A policy that takes one action this often in every visited state hardly looks at what it sees.
ONE_ACTION_SHARE = 0.99


@dataclass(frozen=True)
class EpisodeSample:
    """Returns and levels of all draws, in the order of the schedule, with what the cells recorded along the way."""

    returns: npt.NDArray[np.float64]
    levels: npt.NDArray[np.int64]
    entropy_raw: float
    """Entropy of the policy's own distribution in visited states, mean over draws; NaN for the floor."""
    entropy_played: float
    """Entropy of the distribution that was drawn from; 0 for a rule that takes one action."""
    top_action_share: float
    """Share of counted steps on which the most frequent action was taken."""

    @property
    def is_one_action(self) -> bool:
        """Whether one action was taken in nearly every visited state."""
        return self.top_action_share >= ONE_ACTION_SHARE
