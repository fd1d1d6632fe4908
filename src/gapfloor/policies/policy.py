"""What a policy is: logits for observations, with or without a state of its own.

A policy never chooses the action; a rule does. A logit of minus infinity masks its action. Where actions are rows of
numbers, a policy returns a distribution (`gapfloor.actions.distributions`), or an array with one column per dimension:
the action itself. `as_policy` makes a policy of anything callable, and of objects of Stable-Baselines3 and torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import ActionSpace, Discrete, split
from gapfloor.errors import PolicyError
from gapfloor.policies.acting import METHODS, ActingPolicy, acting_policy
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

    logits: Callable[[npt.NDArray[Any]], Any]


#: What modules of torch, and models and networks of Stable-Baselines3, are derived from.
_OF_SB3 = {
    ("stable_baselines3.common.base_class", "BaseAlgorithm"), ("stable_baselines3.common.policies", "BasePolicy"),
}  # fmt: skip
_OF_TORCH = ("torch.nn.modules.module", "Module")


def as_policy(policy: Any, *, device: str = "cpu") -> Policy | StatefulPolicy:
    """`policy` itself if it has a method `logits`, or a policy made of a known object or of any callable."""
    # By the class: a torch module may have a layer that is called logits.
    if callable(getattr(type(policy), "logits", None)) or "logits" in getattr(policy, "__dict__", {}):
        return cast(Policy, policy)
    # By name: a library that the user has not imported is not imported here.
    classes = {(cls.__module__, cls.__name__) for cls in type(policy).__mro__}
    if classes & _OF_SB3:
        from gapfloor.policies.formats.sb3 import policy_of_model

        return policy_of_model(policy, device=device)
    if _OF_TORCH in classes:
        from gapfloor.policies.formats.module import policy_in_memory

        return policy_in_memory(policy, device=device)
    if isinstance(policy, ActingPolicy):
        return cast(Policy, policy)
    if any(callable(getattr(policy, name, None)) for name in METHODS):
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
        policy: Any = self._policy
        try:
            if self._stateful:
                raw, self._state = policy.logits(observations, self._state, first)
            else:
                raw = policy.logits(observations)
            if not isinstance(self._space, Discrete):
                return self._read_distribution(raw)
            # Most policies return one array, which needs no look.
            is_plain = isinstance(raw, np.ndarray) and not self._space.factors
            logits = as_logits(raw if is_plain else _joint_logits(raw, self._space, name=self._name))
            self._check(logits)
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

    def _read_distribution(self, raw: Any) -> Logits:
        """All parameters of the distribution over a box that a policy returned."""
        from gapfloor.actions.distributions import ActionDistribution, Deterministic, as_floats

        space, n_slots = self._space, self._shape[0]
        found = raw
        if not isinstance(raw, ActionDistribution):
            values = as_floats(raw)
            if values.ndim != 2 or values.shape[1] != space.width:
                raise PolicyError(
                    f"The policy {self._name} returned an array of shape {values.shape} for {space}: return a "
                    "distribution, e.g. gapfloor.actions.distributions.Gaussian(mean, deviation), or one column per "
                    "dimension for the action itself."
                )
            note_once(
                f"The policy {self._name} returns actions, not a distribution: it is played as they are."
            )
            found = Deterministic(values)
        found.check(space, name=self._name)
        self.distribution = found
        if len(found.parameters) != n_slots:
            raise PolicyError(
                f"The policy {self._name} returned {len(found.parameters)} rows for {n_slots} observations: return one "
                "row per observation."
            )
        self._calls += 1
        parameters: Logits = found.parameters
        return parameters

    def _check(self, logits: Logits) -> None:
        if logits.shape != self._shape:
            raise PolicyError(
                f"The policy {self._name} returned logits of shape {logits.shape} at step {self._calls}: "
                f"expected {self._shape}, one row per observation and one column per action."
            )
        finite = np.isfinite(logits)
        if finite.all():
            if self._calls == 0 and (logits >= 0).all() and np.allclose(logits.sum(axis=1), 1.0, atol=1e-4):
                note_once(
                    f"The policy {self._name} returned rows that add up to 1, like probabilities. A policy returns "
                    "logits: return the logarithms of the probabilities, or ignore this note if these are logits."
                )
            return
        usable = (finite | np.isneginf(logits)).all(axis=1) & finite.any(axis=1)
        if not usable.all():
            row = int(np.argmin(usable))
            raise PolicyError(
                f"The policy {self._name} returned logits that are not finite at step {self._calls} "
                f"(row {row}): nothing was recorded for this cell. Only minus infinity may occur, to mask an action, "
                "and not for every action of a row."
            )


def _joint_logits(raw: Any, space: Discrete, *, name: str) -> Any:
    """Logits of numbered actions, where a policy gave those of each dimension; anything else is returned as it is."""
    from gapfloor.actions.distributions import ActionDistribution, Categoricals, as_floats

    if isinstance(raw, Categoricals):
        return raw.joint(space, name=name)
    if isinstance(raw, ActionDistribution):
        raw.check(space, name=name)
    if space.factors and getattr(raw, "ndim", 0) == 2 and raw.shape[1] == sum(space.factors):
        return space.joint(split(as_floats(raw), space.factors))
    return raw


def as_logits(raw: Any) -> Logits:
    """What a policy returned, as a float32 array."""
    if hasattr(raw, "detach"):  # a torch tensor, on any device
        raw = raw.detach().float().cpu().numpy()
    return np.asarray(raw, dtype=np.float32)
