"""Plays a policy whose actions are rows of numbers: a box, or more combinations of whole numbers than can be numbered.

The policy gives a distribution instead of logits; everything else is as in `gapfloor.play.actor`.
"""

from __future__ import annotations

import numpy as np

from gapfloor.actions.distributions import Categoricals
from gapfloor.play.actor import Actions, PolicyActor, Turn


class RowActor(PolicyActor):
    """One inference over the whole batch, then each slot's own rule."""

    def act(self, turn: Turn) -> Actions:
        self._read(turn)
        distribution = self._reader.distribution
        assert distribution is not None
        if turn.masks is not None:
            assert isinstance(distribution, Categoricals)  # a box has no masks
            distribution = distribution.masked(turn.masks)
        self.record = {
            "distribution": type(distribution).__name__,
            "greedy_action": distribution.mode_name,
            "entropy_field": distribution.entropy_field,
        }
        self.entropies = distribution.entropy(self.space)
        actions = np.array([self._noop] * len(turn.rules))
        for rule, mine, uniforms, legal in turn.by_rule():
            actions[mine] = rule.choose_row(distribution.rows(mine), uniforms, self.space, legal)
        return actions
