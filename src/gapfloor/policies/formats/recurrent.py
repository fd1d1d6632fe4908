"""Policies with an LSTM: RecurrentPPO of sb3-contrib, and CleanRL's agents with `lstm_state`.

The harness keeps the LSTM's state and says which rows start an episode; those rows start from zeros, as in the
libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.formats.inference import repeatable
from gapfloor.policies.policy import copy_description


class LstmPolicy:
    """A policy whose `step(observations, state, starts)` returns logits and the next state; see `StatefulPolicy`.

    It holds the policy instead of inheriting: the harness tells the two kinds apart by their methods.
    """

    device: str
    fingerprint: str

    def __init__(self, policy: Any, *, layers: int, size: int) -> None:
        copy_description(policy, self)
        self._policy, self._layers, self._size = policy, layers, size

    def initial_state(self, n: int) -> Any:
        """Hidden and cell state of `n` rows: zeros."""
        import torch

        shape = (self._layers, n, self._size)
        return tuple(torch.zeros(shape, device=self.device) for _ in range(2))

    def logits(self, observations: Any, state: Any, first: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
        """Logits and the next state; rows where `first` is true start from a new state."""
        import torch

        with repeatable():
            starts = torch.as_tensor(np.asarray(first, dtype=np.float32), device=self.device)
            result: tuple[Any, Any] = self._policy.step(observations, state, starts)
            return result
