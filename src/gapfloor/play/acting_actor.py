"""Plays a policy that only acts: each slot asks its own object; there is no distribution and no entropy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import ActionSpace
from gapfloor.play.actor import Actions, Floats, Turn
from gapfloor.policies.acting import ActingPolicy, ActionReader


class ActingActor:
    """See `gapfloor.play.actor.Actor`."""

    probabilities: Floats | None = None
    entropies: Floats | None = None
    disagreements: npt.NDArray[np.bool_] | None = None
    played_entropies: Floats | None = None
    may_shrink = False
    is_function_of_frame = False

    def __init__(self, policy: ActingPolicy, *, name: str, space: ActionSpace, noop: Any) -> None:
        self._policy, self._name = policy, name
        self.space, self._noop = space, noop
        self.record: Mapping[str, str] = policy.record

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
