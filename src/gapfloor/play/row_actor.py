"""Plays a policy whose actions are rows of numbers: a box, or more combinations of whole numbers than can be numbered.

The policy gives a distribution instead of logits; everything else is as in `gapfloor.play.actor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.distributions import Categoricals
from gapfloor.actions.spaces import ActionSpace, Masks
from gapfloor.play.actor import Actions, Floats, without_idle_rows
from gapfloor.policies.protocol import LogitsReader, Policy, StatefulPolicy
from gapfloor.rules import Rule


class RowActor:
    """One inference over the whole batch, then each slot's own rule."""

    may_shrink = False
    probabilities: Floats | None = None
    disagreements: npt.NDArray[np.bool_] | None = None
    played_entropies: Floats | None = None

    def __init__(self, policy: Policy | StatefulPolicy, *, name: str, space: ActionSpace, noop: Any) -> None:
        self._policy, self._name = policy, name
        self.space, self._noop = space, noop
        self.record: Mapping[str, str] = {}
        self.entropies: Floats | None = None

    def resize(self, n_slots: int) -> None:
        self._reader = LogitsReader(self._policy, name=self._name, n_slots=n_slots, space=self.space)

    def act(
        self,
        observations: npt.NDArray[Any],
        first: npt.NDArray[np.bool_],
        uniforms: Floats,
        rules: Sequence[Rule | None],
        masks: Masks | None = None,
    ) -> Actions:
        self._reader.read(without_idle_rows(observations, rules), first)
        distribution = self._reader.distribution
        assert distribution is not None
        if masks is not None:
            assert isinstance(distribution, Categoricals)  # a box has no masks
            distribution = distribution.masked(masks)
        self.record = {
            "distribution": type(distribution).__name__,
            "greedy_action": distribution.mode_name,
            "entropy_field": distribution.entropy_field,
        }
        self.entropies = distribution.entropy(self.space)
        actions = np.array([self._noop] * len(rules))
        for rule in dict.fromkeys(rules):
            if rule is None:
                continue
            mine = np.array([other == rule for other in rules])
            legal = None if masks is None else masks[mine]
            actions[mine] = rule.choose_row(distribution.rows(mine), uniforms[mine], self.space, legal)
        return actions
