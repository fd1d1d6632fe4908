"""What a policy returned, in the form that the environment's action space needs.

Numbered actions need logits, which a policy may also give dimension by dimension. Where actions are rows of numbers, a
policy returns a distribution (`gapfloor.actions.distributions`), or an array with one column per dimension: the action
itself.
"""

from __future__ import annotations

from typing import Any

from gapfloor.actions.distributions import ActionDistribution, Categoricals, Deterministic, as_floats
from gapfloor.actions.spaces import ActionSpace, Discrete, split
from gapfloor.errors import PolicyError
from gapfloor.policies.notes import note_once


def distribution_of(raw: Any, space: ActionSpace, *, name: str) -> ActionDistribution:
    """The distribution that a policy returned over a box."""
    found = raw
    if not isinstance(raw, ActionDistribution):
        values = as_floats(raw)
        if values.ndim != 2 or values.shape[1] != space.width:
            raise PolicyError(
                f"The policy {name} returned an array of shape {values.shape} for {space}: return a distribution, "
                "e.g. gapfloor.actions.distributions.Gaussian(mean, deviation), or one column per dimension for "
                "the action itself."
            )
        note_once(f"The policy {name} returns actions, not a distribution: it is played as they are.")
        found = Deterministic(values)
    found.check(space, name=name)
    checked: ActionDistribution = found
    return checked


def joint_logits(raw: Any, space: Discrete, *, name: str) -> Any:
    """Logits of numbered actions, where a policy gave those of each dimension; anything else is returned as it is."""
    if isinstance(raw, Categoricals):
        return raw.joint(space, name=name)
    if isinstance(raw, ActionDistribution):
        raw.check(space, name=name)
    if space.factors and getattr(raw, "ndim", 0) == 2 and raw.shape[1] == sum(space.factors):
        return space.joint(split(as_floats(raw), space.factors))
    return raw
