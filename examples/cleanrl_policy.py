"""Evaluate weights that CleanRL's `ppo_procgen` trained: its state_dict as a gapfloor policy.

If you have CleanRL's script, no code is needed:
`cleanrl:agent.pt,agent=ppo_procgen:Agent,observation=64x64x3,actions=15`. Without it, this factory renames the tensors,
because CleanRL's network is gapfloor's IMPALA agent under other names:

    import torch; torch.save(agent.state_dict(), "agent.pt")      # at the end of CleanRL's script

    cd examples
    CLEANRL_WEIGHTS=agent.pt gapfloor evaluate cleanrl_policy:factory --game starpilot --rules sampled

`weights_only=True` keeps the file from running code while it loads.
"""

from __future__ import annotations

import os
import re

import numpy as np
import torch

from gapfloor.engines.procgen import N_ACTIONS, OBSERVATION_SHAPE
from gapfloor.training.agent import Agent, lay_out_channels_last

#: CleanRL's names (as patterns) and ours.
RENAMED = (
    (r"network\.([012])\.conv\.", r"encoder.blocks.\1.conv."),
    (r"network\.([012])\.res_block([01])\.", r"encoder.blocks.\1.residual\2."),
    (r"network\.5\.", "encoder.projection."),
    (r"actor\.", "policy."),
    (r"critic\.", "value."),
)


class CleanRLPolicy:
    """Logits of CleanRL's agent; its value head is loaded too and is not used."""

    backend = "torch"

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        self._agent = Agent("impala", observation_shape=OBSERVATION_SHAPE, n_actions=N_ACTIONS)
        self._agent.load_state_dict({rename(name): tensor for name, tensor in weights.items()})
        lay_out_channels_last(self._agent).eval()

    def logits(self, observations: np.ndarray) -> np.ndarray:
        """Logits `[N, 15]` of uint8 observations `[N, 64, 64, 3]`."""
        with torch.inference_mode():
            return self._agent(torch.tensor(observations))[0].numpy()


def rename(name: str) -> str:
    """Our name of CleanRL's tensor."""
    for pattern, ours in RENAMED:
        renamed, n_replaced = re.subn(f"^{pattern}", ours, name)
        if n_replaced:
            return renamed
    raise ValueError(f"{name} is not a tensor of CleanRL's ppo_procgen agent")


def factory() -> CleanRLPolicy:
    """The policy whose state_dict is in the file that CLEANRL_WEIGHTS names."""
    return CleanRLPolicy(torch.load(os.environ["CLEANRL_WEIGHTS"], map_location="cpu", weights_only=True))
