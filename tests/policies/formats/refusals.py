"""What every refused policy must satisfy, shared by the tests of hostile files and by fuzzing."""

from __future__ import annotations

import resource
import warnings

import numpy as np

from gapfloor.errors import GapfloorError
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import StatefulPolicy


def refusal_of(line: str) -> str | None:
    """The sentence with which a line is refused, or None if it loads; any other exception is a fault of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PolicySource(line).load()
    except GapfloorError as error:
        return str(error)
    return None


def ask_once(line: str, observations: np.ndarray) -> str | None:
    """The sentence with which a line or its first answer is refused, or None if it answers."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            policy = PolicySource(line).load()
            if isinstance(policy, StatefulPolicy):
                n = len(observations)
                policy.logits(observations, policy.initial_state(n), np.ones(n, dtype=bool))
            else:
                policy.logits(observations)
    except GapfloorError as error:
        return str(error)
    return None


def memory_used() -> int:
    """The most memory that this process has used so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
