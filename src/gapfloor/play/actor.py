"""Who acts in a batch of slots: a policy through its rules, or a reference.

The actor turns observations into one action per slot and keeps the entropies and disagreements of the last step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import entropy
from gapfloor.actions.spaces import ActionSpace, Box, Discrete, Masks
from gapfloor.engines.engine import Engine, Observations, map_arrays
from gapfloor.errors import PolicyError
from gapfloor.policies.acting import ActingPolicy, ActionReader
from gapfloor.policies.policy import LogitsReader, Policy, StatefulPolicy
from gapfloor.policies.references import Reference
from gapfloor.rules.rule import Rule, softmax

#: Whole numbers, or one row per slot.
Actions = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Turn:
    """What an actor is shown before it acts."""

    observations: Observations
    first: npt.NDArray[np.bool_]
    """Where an episode begins."""
    uniforms: Floats
    """Each slot's own random numbers for this step."""
    rules: Sequence[Rule | None]
    """Each slot's rule; None where nothing is played."""
    masks: Masks | None = None
    """Which actions are legal, if the engine says so."""

    def by_rule(self) -> Iterator[tuple[Rule, npt.NDArray[np.bool_], Floats, Masks | None]]:
        """Each rule once, with the slots it plays, their random numbers and their legal actions."""
        for rule in dict.fromkeys(self.rules):
            if rule is not None:
                mine = np.array([other == rule for other in self.rules])
                yield rule, mine, self.uniforms[mine], None if self.masks is None else self.masks[mine]


class Actor(ABC):
    """Chooses one action for every slot of a batch."""

    space: ActionSpace
    """The actions that it chooses from."""
    record: Mapping[str, str] = MappingProxyType({})
    """Fields of the cell record about its distribution, known after the first step; empty where logits say it all."""
    needs_full_batch = True
    """Whether it is always asked in one batch shape, because the shape changes the last bits of logits."""
    probabilities: Floats | None = None
    """The distributions of the last `act`, or None."""
    entropies: Floats | None = None
    """Their entropies, or None."""
    disagreements: npt.NDArray[np.bool_] | None = None
    """Where the last choice fell into another class than plain argmax, or None where no rule merges."""
    played_entropies: Floats | None = None
    """Entropies of what was drawn from where a rule changes the distribution, or None where none does."""

    @property
    def is_function_of_frame(self) -> bool:
        """Whether it is known to do the same, under a deterministic rule, whenever a slot sees the same frame."""
        return False

    @abstractmethod
    def resize(self, n_slots: int) -> None:
        """Forget everything and serve a batch of this size."""

    @abstractmethod
    def act(self, turn: Turn) -> Actions:
        """One action per slot."""


class ReferenceActor(Actor):
    """Plays a reference: no observation is looked at."""

    needs_full_batch = False

    def __init__(self, reference: Reference, *, space: ActionSpace) -> None:
        self._reference = reference
        self.space = space

    @property
    def is_function_of_frame(self) -> bool:
        return self._reference.is_deterministic

    def resize(self, n_slots: int) -> None:
        space = self.space
        self._last = np.full((n_slots, space.width) if space.width else n_slots, space.nothing)

    def act(self, turn: Turn) -> Actions:
        self._last[turn.first] = self.space.nothing
        self._last = self._reference.choose(turn.uniforms, self.space, self._last, turn.masks)
        return self._last


class PolicyActor(Actor):
    """Plays a policy: one inference over the whole batch, then each slot's own rule."""

    def __init__(self, policy: Policy | StatefulPolicy, *, name: str, space: ActionSpace, noop: Any) -> None:
        self._policy, self._name = policy, name
        self.space, self._noop = space, noop

    @property
    def is_function_of_frame(self) -> bool:
        return bool(getattr(self._policy, "is_function_of_frame", False))

    def resize(self, n_slots: int) -> None:
        self._reader = LogitsReader(self._policy, name=self._name, n_slots=n_slots, space=self.space)

    def act(self, turn: Turn) -> Actions:
        logits = self._reader.read(without_idle_rows(turn.observations, turn.rules), turn.first)
        if turn.masks is not None:
            logits = np.where(turn.masks, logits, np.float32(-np.inf))
            if not np.isfinite(logits).any(axis=1).all():
                raise PolicyError(
                    f"The policy {self._name} gives every legal action of a state the probability 0: nothing can be "
                    "drawn from it."
                )
        self.probabilities = softmax(logits)
        self.entropies = entropy(self.probabilities)
        self.disagreements = self.played_entropies = None
        actions = np.full(len(turn.rules), self._noop, dtype=np.int64)
        for rule, mine, uniforms, legal in turn.by_rule():
            actions[mine] = rule.choose(logits[mine], uniforms, legal)
            differ = rule.disagreements(logits[mine], actions[mine])
            if differ is not None:
                self.disagreements = _filled(self.disagreements, mine, differ)
            changed = rule.changed_distribution(logits[mine], legal)
            if changed is not None:
                self.played_entropies = _filled(self.played_entropies, mine, entropy(changed))
        return actions


class RowActor(PolicyActor):
    """Plays a policy whose actions are rows of numbers: it gives a distribution instead of logits."""

    def act(self, turn: Turn) -> Actions:
        self._reader.read(without_idle_rows(turn.observations, turn.rules), turn.first)
        distribution, space = self._reader.distribution, self.space
        assert distribution is not None
        assert isinstance(space, Box)
        self.record = {
            "distribution": type(distribution).__name__,
            "greedy_action": distribution.mode_name,
            "entropy_field": "entropy_differential",
        }
        self.entropies = distribution.entropy(space)
        actions = np.array([self._noop] * len(turn.rules))
        for rule, mine, uniforms, _ in turn.by_rule():
            actions[mine] = rule.choose_row(distribution.rows(mine), uniforms, space)
        return actions


class ActingActor(Actor):
    """Plays a policy that only acts: each slot asks its own object; there is no distribution and no entropy."""

    def __init__(self, policy: ActingPolicy, *, name: str, space: ActionSpace, noop: Any) -> None:
        self._policy, self._name = policy, name
        self.space, self._noop = space, noop
        self.record = policy.record

    def resize(self, n_slots: int) -> None:
        self._reader = ActionReader(self._policy, name=self._name, n_slots=n_slots, space=self.space)

    def act(self, turn: Turn) -> Actions:
        rows = [row for row, rule in enumerate(turn.rules) if rule is not None]
        for row in rows:
            if turn.first[row]:
                self._reader.begin(row, float(np.ravel(turn.uniforms[row])[0]))
        actions = np.array([self._noop] * len(turn.rules))
        for row, action in zip(rows, self._reader.read(turn.observations, rows), strict=True):
            actions[row] = action
        return actions


def policy_actor(policy: Any, *, name: str, engine: Engine) -> Actor:
    """The actor of a policy in an engine: through logits, through distributions over rows of numbers, or its own."""
    is_numbered = isinstance(engine.action_space, Discrete)
    kind: Any = PolicyActor if is_numbered else RowActor
    if not hasattr(policy, "logits"):
        kind = ActingActor
    actor: Actor = kind(policy, name=name, space=engine.action_space, noop=engine.noop)
    return actor


def without_idle_rows(observations: Observations, rules: Sequence[Rule | None]) -> Observations:
    """The batch with a played slot's observation in every idle row: nobody should be asked about an empty one."""
    idle = np.array([rule is None for rule in rules])
    if not idle.any() or idle.all():
        return observations
    played = int(np.argmin(idle))
    filled: Observations = map_arrays(observations, lambda array: _filled(array.copy(), idle, array[played]))
    return filled


def _filled(array: npt.NDArray[Any] | None, rows: npt.NDArray[np.bool_], values: Any) -> npt.NDArray[Any]:
    """The array with values in some rows; zeros elsewhere where there was none."""
    if array is None:
        array = np.zeros(len(rows), dtype=values.dtype)
    array[rows] = values
    return array
