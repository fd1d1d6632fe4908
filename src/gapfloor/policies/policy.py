"""What a policy is: logits for observations, with or without a state of its own.

A policy never chooses the action; a rule does. A logit of minus infinity masks its action. `as_policy` makes a policy
of anything callable, and of the objects of other libraries that `in_memory` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import ActionSpace, Discrete
from gapfloor.errors import PolicyError
from gapfloor.policies.notes import note_once
from gapfloor.users_code import in_users_words

if TYPE_CHECKING:  # scipy is imported only where such a distribution is played
    from gapfloor.actions.distributions import ActionDistribution

Logits = npt.NDArray[np.float32]


@runtime_checkable
class Policy(Protocol):
    """A policy without state: `logits(observations[N, ...]) -> [N, n_actions]`."""

    def logits(self, observations: npt.NDArray[Any]) -> Any: ...


@runtime_checkable
class StatefulPolicy(Protocol):
    """A policy with state: the harness keeps the state and tells which rows start an episode."""

    def initial_state(self, n: int) -> Any: ...

    def logits(self, observations: npt.NDArray[Any], state: Any, first: npt.NDArray[np.bool_]) -> Any: ...


@dataclass(frozen=True)
class CallablePolicy:
    """A function from observations to logits."""

    function: Callable[[npt.NDArray[Any]], Any]

    def logits(self, observations: npt.NDArray[Any]) -> Any:
        """What the function returns."""
        return self.function(observations)


def as_policy(policy: Any, *, device: str = "cpu") -> Policy | StatefulPolicy:
    """`policy` itself if it has a method `logits`, or a policy made of a known object or of any callable."""
    # By the class: a torch module may have a layer that is called logits.
    if callable(getattr(type(policy), "logits", None)) or "logits" in getattr(policy, "__dict__", {}):
        return cast(Policy, policy)
    from gapfloor.policies.acting import ActingPolicy, acting_policy, can_act
    from gapfloor.policies.in_memory import policy_in_memory

    known = policy_in_memory(policy, device=device)
    if known is not None:
        return known
    if isinstance(policy, ActingPolicy):
        return cast(Policy, policy)
    if can_act(policy):
        return cast(Policy, acting_policy(policy, name=type(policy).__name__))
    if callable(policy):
        return CallablePolicy(policy)
    raise PolicyError(
        f"An object of type {type(policy).__name__} is not a policy: give one with logits(observations) or "
        "act(observation), a torch module, a Stable-Baselines3 model, or a callable."
    )


#: What may be known of a policy; see the classes that state it.
_KNOWN = (
    "name", "header", "fingerprint", "backend", "device", "acts_in", "reads_masks", "is_function_of_content",
)  # fmt: skip


def copy_description(policy: Any, other: Any) -> None:
    """Give `other` what is known of the policy that it wraps."""
    for name in _KNOWN:
        if hasattr(policy, name):
            setattr(other, name, getattr(policy, name))


class LogitsReader:
    """Asks a policy for logits and refuses what cannot be used, naming the policy and the step.

    One reader is for one batch of slots: it keeps the policy's state, if there is any.
    """

    def __init__(
        self, policy: Policy | StatefulPolicy, *, name: str, n_slots: int, space: ActionSpace
    ) -> None:
        if not hasattr(policy, "logits"):
            raise PolicyError(f"The policy {name} only acts: it has no logits, and its one rule is own.")
        self._policy = policy
        self._name = name
        self._space = space
        self._shape = (n_slots, space.n if isinstance(space, Discrete) else 0)
        self.distribution: ActionDistribution | None = None
        self._stateful = isinstance(policy, StatefulPolicy)
        self._state = policy.initial_state(n_slots) if isinstance(policy, StatefulPolicy) else None
        self._calls = 0

    def read(self, observations: npt.NDArray[Any], first: npt.NDArray[np.bool_]) -> Logits:
        """Logits of the whole batch, as float32; where actions are rows, all parameters of `distribution`."""
        logits: Logits
        try:
            raw = self._ask(observations, first)
            if isinstance(self._space, Discrete):
                logits = as_logits(self._numbered(raw, self._space))
                self._check(logits)
            else:
                logits = self._read_distribution(raw)
        except (PolicyError, MemoryError):
            raise
        except Exception as error:
            # By name: torch, jax and others each have a class of their own.
            if type(error).__name__ == "OutOfMemoryError":
                raise PolicyError(
                    f"The device ran out of memory while the policy {self._name} was asked for a batch of "
                    f"{self._shape[0]}: use a smaller --batch or --device cpu."
                ) from error
            raise PolicyError(
                f"The policy {self._name} failed at step {self._calls}: {in_users_words(error)}"
            ) from error
        self._calls += 1
        return logits

    def _numbered(self, raw: Any, space: Discrete) -> Any:
        """The logits of numbered actions; most policies return them as one array, which needs no look."""
        if isinstance(raw, np.ndarray) and not space.factors:
            return raw
        from gapfloor.policies.outputs import joint_logits

        return joint_logits(raw, space, name=self._name)

    def _read_distribution(self, raw: Any) -> Any:
        from gapfloor.policies.outputs import distribution_of

        self.distribution = distribution_of(raw, self._space, name=self._name)
        parameters = self.distribution.parameters
        if len(parameters) != self._shape[0]:
            raise PolicyError(
                f"The policy {self._name} returned {len(parameters)} rows for {self._shape[0]} observations: return "
                "one row per observation."
            )
        return parameters

    def _ask(self, observations: npt.NDArray[Any], first: npt.NDArray[np.bool_]) -> Any:
        if self._stateful:
            raw, self._state = self._policy.logits(observations, self._state, first)  # type: ignore[call-arg]
            return raw
        return self._policy.logits(observations)  # type: ignore[call-arg]

    def _check(self, logits: Logits) -> None:
        if logits.shape != self._shape:
            raise PolicyError(
                f"The policy {self._name} returned logits of shape {logits.shape} at step {self._calls}: "
                f"expected {self._shape}, one row per observation and one column per action."
            )
        if np.isfinite(logits).all():
            if self._calls == 0 and _look_like_probabilities(logits):
                note_once(
                    f"The policy {self._name} returned rows that add up to 1, like probabilities. A policy returns "
                    "logits: return the logarithms of the probabilities, or ignore this note if these are logits."
                )
            return
        usable = (np.isfinite(logits) | np.isneginf(logits)).all(axis=1) & np.isfinite(logits).any(axis=1)
        if not usable.all():
            row = int(np.argmin(usable))
            raise PolicyError(
                f"The policy {self._name} returned logits that are not finite at step {self._calls} "
                f"(row {row}): nothing was recorded for this cell. Only minus infinity may occur, to mask an action, "
                "and not for every action of a row."
            )


def as_logits(raw: Any) -> Logits:
    """What a policy returned, as a float32 array."""
    if hasattr(raw, "detach"):  # a torch tensor, on any device
        raw = raw.detach().float().cpu().numpy()
    return np.asarray(raw, dtype=np.float32)


def _look_like_probabilities(logits: Logits) -> bool:
    return bool((logits >= 0).all() and np.allclose(logits.sum(axis=1), 1.0, atol=1e-4))
