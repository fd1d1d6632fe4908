"""A policy by the name that commands use, or from an object in memory."""

from __future__ import annotations

from typing import Any

from gapfloor.play.candidate import policy_source
from gapfloor.policies.policy import Policy, StatefulPolicy


def load_policy(source: Any, *, device: str = "cpu") -> Policy | StatefulPolicy:
    """The policy that `evaluate` would play: an object with `logits(observations)`.

    Loading a file never runs code that it holds.

    Args:
        source: A checkpoint or the folder of a run; a file of another library with its prefix (`sb3:model.zip`,
            `cleanrl:`, `statedict:`, `onnx:`); `package.module:factory`; or an object: a
            callable, a torch module, a model of Stable-Baselines3.
        device: Where the network runs: cpu or cuda.

    Returns:
        A policy. One with a state of its own (a recurrent network) also has `initial_state(n)`, and its `logits` takes
        and returns the state.

    Examples:
        >>> from gapfloor.api.load_policy import load_policy
        >>> import numpy as np
        >>> policy = load_policy(lambda frames: np.zeros((len(frames), 15)))
        >>> policy.logits(np.zeros((2, 64, 64, 3), dtype=np.uint8)).shape
        (2, 15)
    """
    return policy_source(source, device=device).load()
