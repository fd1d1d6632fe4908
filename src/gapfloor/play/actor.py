"""Who acts in a batch of slots: a policy through its rules, or a reference.

The actor turns observations into one action per slot and keeps the entropies and disagreements of the last step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gapfloor.actions.entropy import entropy
from gapfloor.engines.protocol import Observations
from gapfloor.policies.protocol import LogitsReader, Policy, StatefulPolicy
from gapfloor.policies.references import Reference
from gapfloor.rules import Rule, softmax

Actions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Actor(Protocol):
    """Chooses one action for every slot of a batch."""

    may_shrink: bool
    """Whether the batch may get smaller at the end of the queue (never where the shape fixes the bits)."""

    def resize(self, n_slots: int) -> None:
        """Forget everything and serve a batch of this size."""
        ...

    def act(
        self,
        observations: npt.NDArray[Any],
        first: npt.NDArray[np.bool_],
        uniforms: Floats,
        rules: Sequence[Rule | None],
    ) -> Actions:
        """One action per slot; `rules[slot]` is None where nothing is played."""
        ...

    probabilities: Floats | None
    """The distributions of the last `act`, or None."""
    entropies: Floats | None
    """Their entropies, or None."""
    disagreements: npt.NDArray[np.bool_] | None
    """Where the last choice fell into another class than plain argmax, or None where no rule merges."""
    played_entropies: Floats | None
    """Entropies of what was drawn from where a rule changes the distribution, or None where none does."""


class ReferenceActor:
    """Plays a reference: no observation is looked at."""

    probabilities: Floats | None = None
    entropies: Floats | None = None
    disagreements: npt.NDArray[np.bool_] | None = None
    played_entropies: Floats | None = None

    def __init__(self, reference: Reference, *, n_actions: int) -> None:
        self._reference = reference
        self._n_actions = n_actions
        # A slot that moves to a smaller batch would lose its last action.
        self.may_shrink = not reference.remembers

    def resize(self, n_slots: int) -> None:
        self._last = np.full(n_slots, -1, dtype=np.int64)

    def act(
        self,
        observations: npt.NDArray[Any],
        first: npt.NDArray[np.bool_],
        uniforms: Floats,
        rules: Sequence[Rule | None],
    ) -> Actions:
        self._last[first] = -1
        self._last = self._reference.choose(uniforms, self._n_actions, self._last)
        return self._last


class PolicyActor:
    """Plays a policy: one inference over the whole batch, then each slot's own rule."""

    may_shrink = False

    def __init__(self, policy: Policy | StatefulPolicy, *, name: str, n_actions: int, noop: int) -> None:
        self._policy, self._name = policy, name
        self._n_actions, self._noop = n_actions, noop
        self.probabilities: Floats | None = None
        self.entropies: Floats | None = None
        self.disagreements: npt.NDArray[np.bool_] | None = None
        self.played_entropies: Floats | None = None

    def resize(self, n_slots: int) -> None:
        self._reader = LogitsReader(self._policy, name=self._name, n_slots=n_slots, n_actions=self._n_actions)

    def act(
        self,
        observations: npt.NDArray[Any],
        first: npt.NDArray[np.bool_],
        uniforms: Floats,
        rules: Sequence[Rule | None],
    ) -> Actions:
        logits = self._reader.read(_without_idle_rows(observations, rules), first)
        self.probabilities = softmax(logits)
        self.entropies = entropy(self.probabilities)
        self.disagreements = None
        self.played_entropies = None
        actions = np.full(len(rules), self._noop, dtype=np.int64)
        for rule in dict.fromkeys(rules):
            if rule is None:
                continue
            mine = np.array([other == rule for other in rules])
            actions[mine] = rule.choose(logits[mine], uniforms[mine])
            self._note_disagreements(rule.disagreements(logits[mine], actions[mine]), mine)
            changed = rule.changed_distribution(logits[mine])
            if changed is not None:
                if self.played_entropies is None:
                    self.played_entropies = np.zeros(len(rules))
                self.played_entropies[mine] = entropy(changed)
        return actions

    def _note_disagreements(
        self, disagreements: npt.NDArray[np.bool_] | None, mine: npt.NDArray[np.bool_]
    ) -> None:
        if disagreements is None:
            return
        if self.disagreements is None:
            self.disagreements = np.zeros(len(mine), dtype=bool)
        self.disagreements[mine] = disagreements


def _without_idle_rows(observations: Observations, rules: Sequence[Rule | None]) -> Observations:
    """The batch with a played slot's observation in every idle row: nobody should be asked about an empty one."""
    idle = [row for row, rule in enumerate(rules) if rule is None]
    if not idle or len(idle) == len(rules):
        return observations
    played = next(row for row, rule in enumerate(rules) if rule is not None)
    if isinstance(observations, Mapping):
        return {name: _filled(array, idle, played) for name, array in observations.items()}
    return _filled(observations, idle, played)


def _filled(array: npt.NDArray[Any], idle: list[int], played: int) -> npt.NDArray[Any]:
    filled = array.copy()
    filled[idle] = array[played]
    return filled
