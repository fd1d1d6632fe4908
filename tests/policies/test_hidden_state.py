"""A callable that keeps a state of its own is found and refused with the remedy; one without is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import small_policies
from gapfloor.actions.spaces import Discrete
from gapfloor.errors import PolicyError
from gapfloor.policies.policy import as_policy, fingerprint


class SmallEngine:
    """Four slots, two numbers each, three actions."""

    n_slots, action_space, masks = 4, Discrete(3), None

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def observe(self) -> Any:
        return self._rng.normal(size=(4, 2)), np.zeros(4), np.zeros(4, dtype=bool)

    def step(self, actions: np.ndarray) -> Any:
        return self.observe()


def linear(observations: np.ndarray) -> np.ndarray:
    return observations @ np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 1.0]])


class Counts:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        self.calls += 1
        return linear(observations) + self.calls


class StacksFrames:
    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        before = observations * 0 if self.last is None else self.last
        self.last = observations
        return linear(observations + before)


class RemembersRows:
    """Adds what it saw first in each row: the same batch twice gives the same, another order does not."""

    def __init__(self) -> None:
        self.first: Any = None

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        if self.first is None:
            self.first = observations
        return linear(observations + 2 * self.first)


def draws(observations: np.ndarray) -> np.ndarray:
    return linear(observations) + np.random.random((4, 3))


@pytest.mark.fast
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Counts(), "different logits for the same observations"),
        (StacksFrames(), "different logits for the same observations"),
        (draws, "draws random numbers"),
        (RemembersRows(), "other logits for the same observations in another order"),
    ],
)
def test_a_hidden_state_is_refused_with_the_remedy(policy: Any, words: str) -> None:
    with pytest.raises(
        PolicyError, match=rf"(?s)mine .*{words}.*initial_state\(n\) and logits\(observations, state, first\)"
    ):
        fingerprint(as_policy(policy), name="mine", engine=SmallEngine())  # type: ignore[arg-type]


@pytest.mark.fast
def test_a_policy_without_a_state_passes_masks_included() -> None:
    def masked(observations: np.ndarray) -> np.ndarray:
        logits = linear(observations)
        logits[observations[:, 0] > 0, 1] = -np.inf
        return logits

    for policy in (linear, masked):
        assert len(fingerprint(as_policy(policy), name="mine", engine=SmallEngine())) == 64  # type: ignore[arg-type]


@pytest.mark.fast
def test_a_policy_that_hands_over_its_state_is_not_asked() -> None:
    class Engine(SmallEngine):
        action_space = Discrete(15)

    assert fingerprint(small_policies.CountingPolicy(), name="mine", engine=Engine())  # type: ignore[arg-type]
