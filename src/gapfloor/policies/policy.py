"""What a policy is: logits for observations, with or without a state of its own; and what makes two policies the same.

A policy never chooses the action; a rule does. A logit of minus infinity masks its action. Where actions are rows of
numbers, a policy returns a distribution (`gapfloor.actions.distributions`), or an array with one column per dimension:
the action itself. `as_policy` makes a policy of anything callable, and of objects of Stable-Baselines3 and torch.

The hash of a checkpoint is that of its tensors. A policy without a hash of its own is identified by what it does: the
bytes of its logits on fixed observations. So a factory whose weights file has changed is another policy, and two
"seeds" that are copies of one file are the same policy.

A policy that keeps a state which the harness does not know about is refused. Episodes are played in any order and in
any row of a batch, so logits may depend on nothing but the observations (and on the state that the harness keeps for a
`StatefulPolicy`). A recurrent network or a frame stack that lives inside a callable breaks this silently; it is found
by asking twice about the same observations, and once in another order.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import ActionSpace, Discrete, split
from gapfloor.engines.engine import Engine, map_arrays
from gapfloor.errors import PolicyError
from gapfloor.policies.acting import METHODS, ActingPolicy, acting_policy
from gapfloor.policies.notes import note_once
from gapfloor.users_code import in_users_words

if TYPE_CHECKING:
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


#: Steps of play whose logits identify a policy without a hash of its own.
FINGERPRINT_STEPS = 32


def own_fingerprint(policy: Any) -> str:
    """The hash that a policy brings itself; empty where it brings none."""
    own = getattr(policy, "fingerprint", None)
    return own if isinstance(own, str) else ""


def fingerprint(policy: Policy | StatefulPolicy, *, name: str, engine: Engine) -> str:
    """The policy's own `fingerprint` if it has one, else the hash of its logits during fixed random play.

    `engine` must be fresh, so that the observations are always the same.
    """
    observations, _, first = engine.observe()
    # Policies that cannot keep a state say so, and are not asked.
    if not isinstance(policy, StatefulPolicy) and getattr(policy, "keeps_no_state", False) is not True:
        _refuse_hidden_state(policy, observations, first, name=name, engine=engine)
    if own := own_fingerprint(policy):
        return own
    reader = LogitsReader(policy, name=name, n_slots=engine.n_slots, space=engine.action_space)
    rng = np.random.Generator(np.random.Philox(key=0))
    digest, space, n = hashlib.sha256(), engine.action_space, engine.n_slots
    for _ in range(FINGERPRINT_STEPS):
        digest.update(reader.read(observations, first).tobytes())
        if engine.masks is None:
            actions = space.random(rng, n)
        else:
            actions = space.uniform(rng.random((n, space.width) if space.width else n), engine.masks)
        observations, _, first = engine.step(actions)
    return digest.hexdigest()


def backend_of(policy: Any) -> tuple[str, str, str]:
    """The library that computes the policy's logits, its version, and the device that it runs on.

    The version is empty for a callable, whose libraries are not known.
    """
    name = str(getattr(policy, "backend", "callable"))
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return name, version, str(getattr(policy, "device", "cpu"))


def instruction_set() -> str:
    """The vector instructions of this machine, as numpy sees them."""
    features = importlib.import_module("numpy.core._multiarray_umath").__cpu_features__
    return next((name for name in ("AVX512_SKX", "AVX2", "NEON") if features.get(name)), "baseline")


#: How much the logits of a row may change when it moves to another row, relative to the largest logit: matrix products
#: add in another order there.
_TOLERANCE = 1e-3


def _refuse_hidden_state(
    policy: Policy, observations: Any, first: npt.NDArray[np.bool_], *, name: str, engine: Engine
) -> None:
    """Refuse a policy without a declared state whose logits depend on more than the observations."""
    reader = LogitsReader(policy, name=name, n_slots=engine.n_slots, space=engine.action_space)
    before, again = reader.read(observations, first), reader.read(observations, first)
    if not np.array_equal(before, again):
        raise PolicyError(
            f"The policy {name} returned different logits for the same observations: it keeps a state of its own, or "
            f"draws random numbers (dropout: call eval()). {_REMEDY}"
        )
    reverse = map_arrays(observations, lambda array: np.ascontiguousarray(array[::-1]))
    turned = reader.read(reverse, first[::-1])[::-1]
    finite = np.isfinite(before)
    scale = max(1.0, float(np.abs(before[finite]).max(initial=0.0)))
    same_masks = np.array_equal(finite, np.isfinite(turned))
    if not same_masks or not np.allclose(before[finite], turned[finite], rtol=0, atol=_TOLERANCE * scale):
        raise PolicyError(
            f"The policy {name} returned other logits for the same observations in another order: it keeps a state for "
            f"each row of the batch, or mixes rows. {_REMEDY}"
        )


_REMEDY = (
    "Give the harness the state instead: an object with initial_state(n) and logits(observations, state, first), which "
    "returns the logits and the next state; or use framestack= for a stack of frames."
)
