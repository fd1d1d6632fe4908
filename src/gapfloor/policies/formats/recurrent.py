"""RecurrentPPO of sb3-contrib as a policy with state: `recurrent:model.zip`.

The harness keeps the LSTM's state and says which rows start an episode; those rows start from zeros, as in the
library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.formats.inference import repeatable
from gapfloor.policies.formats.sb3 import SB3Policy
from gapfloor.policies.formats.sb3_outputs import distribution_output
from gapfloor.policies.protocol import copy_description


class RecurrentPolicy:
    """An LSTM policy of sb3-contrib; see `gapfloor.policies.protocol.StatefulPolicy`."""

    backend = "torch"

    def __init__(self, network: Any, **described: Any) -> None:
        # Holds the stateless policy instead of inheriting: the harness tells the two kinds apart by their methods.
        self._inner = SB3Policy(network, **described)
        self.device, self.acts_in = self._inner.device, self._inner.acts_in
        copy_description(self._inner, self)
        self._network = network

    def initial_state(self, n: int) -> Any:
        """Hidden and cell state of `n` rows: zeros."""
        import torch

        layers, _, size = self._network.lstm_hidden_state_shape
        return torch.zeros(layers, n, size, device=self.device), torch.zeros(
            layers, n, size, device=self.device
        )

    def logits(self, observations: Any, state: Any, first: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
        """Logits and the next state; rows where `first` is true start from a new state."""
        import torch

        with repeatable():
            starts = torch.as_tensor(np.asarray(first, dtype=np.float32), device=self.device)
            tensors = self._inner._tensors(observations)
            distribution, state = self._network.get_distribution(tensors, state, starts)
            return distribution_output(distribution, name=self._inner.name), state
