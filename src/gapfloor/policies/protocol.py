"""What a policy is: logits for observations, with or without a state of its own.

A policy never chooses the action; a rule does. Anything callable will do (`wrap` makes a policy of it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError

Logits = npt.NDArray[np.float32]


@runtime_checkable
class Policy(Protocol):
    """A policy without state: `logits(observations[N, ...]) -> [N, n_actions]`."""

    def logits(self, observations: npt.NDArray[Any]) -> Any: ...


@runtime_checkable
class StatefulPolicy(Protocol):
    """A policy with state: the harness keeps the state and says which rows start an episode."""

    def initial_state(self, n: int) -> Any: ...

    def logits(self, observations: npt.NDArray[Any], state: Any, first: npt.NDArray[np.bool_]) -> Any: ...


@dataclass(frozen=True)
class _Callable:
    function: Callable[[npt.NDArray[Any]], Any]

    def logits(self, observations: npt.NDArray[Any]) -> Any:
        return self.function(observations)


def wrap(policy: Any) -> Policy | StatefulPolicy:
    """`policy` itself if it has `logits`, or a policy made of any callable."""
    if hasattr(policy, "logits"):
        if hasattr(policy, "initial_state"):
            stateful: StatefulPolicy = policy
            return stateful
        stateless: Policy = policy
        return stateless
    if callable(policy):
        return _Callable(policy)
    raise PolicyError(
        f"A {type(policy).__name__} is not a policy: give an object with logits(observations), or a callable."
    )


class LogitsReader:
    """Asks a policy for logits and refuses what cannot be used, naming the policy and the step.

    One reader serves one batch of slots: it holds the policy's state, if there is any.
    """

    def __init__(self, policy: Policy | StatefulPolicy, *, name: str, n_slots: int, n_actions: int) -> None:
        self._policy = policy
        self._name = name
        self._shape = (n_slots, n_actions)
        self._stateful = isinstance(policy, StatefulPolicy)
        self._state = policy.initial_state(n_slots) if isinstance(policy, StatefulPolicy) else None
        self._calls = 0

    def read(self, observations: npt.NDArray[Any], first: npt.NDArray[np.bool_]) -> Logits:
        """Logits of the whole batch, as float32."""
        try:
            raw = self._ask(observations, first)
        except PolicyError:
            raise
        except MemoryError:
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":
                raise
            raise PolicyError(
                f"The policy {self._name} failed at step {self._calls}: {type(error).__name__}: {error}"
            ) from error
        logits = _to_numpy(raw)
        if logits.shape != self._shape:
            raise PolicyError(
                f"The policy {self._name} returned logits of shape {logits.shape} at step {self._calls}: "
                f"expected {self._shape}, one row an observation and one column an action."
            )
        if not np.isfinite(logits).all():
            row = int(np.argmin(np.isfinite(logits).all(axis=1)))
            raise PolicyError(
                f"The policy {self._name} returned logits that are not finite at step {self._calls} "
                f"(row {row}): nothing was recorded for this cell."
            )
        self._calls += 1
        return logits

    def _ask(self, observations: npt.NDArray[Any], first: npt.NDArray[np.bool_]) -> Any:
        if self._stateful:
            raw, self._state = self._policy.logits(observations, self._state, first)  # type: ignore[call-arg]
            return raw
        return self._policy.logits(observations)  # type: ignore[call-arg]


def _to_numpy(raw: Any) -> Logits:
    if hasattr(raw, "detach"):  # a torch tensor, on any device
        raw = raw.detach().cpu().numpy()
    return np.asarray(raw, dtype=np.float32)
