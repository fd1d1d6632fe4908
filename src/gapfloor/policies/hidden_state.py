"""Finds policies that keep a state which the harness does not know about.

Episodes are played in any order and in any row of a batch, so logits may depend on nothing but the observations (and on
the state that the harness keeps for a `StatefulPolicy`). A recurrent network or a frame stack that lives inside a
callable breaks this silently; it is found by asking twice about the same observations, and once in another order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gapfloor.engines.engine import Engine
from gapfloor.errors import PolicyError
from gapfloor.policies.policy import LogitsReader, Policy, StatefulPolicy

#: How much the logits of a row may change when it moves to another row, relative to the largest logit: matrix products
#: add in another order there.
_TOLERANCE = 1e-3


def refuse_hidden_state(policy: Policy | StatefulPolicy, *, name: str, engine: Engine) -> None:
    """Refuse a policy without a declared state whose logits depend on more than the observations.

    Policies that cannot keep a state say so with `keeps_no_state = True` and are not asked.
    """
    if isinstance(policy, StatefulPolicy) or getattr(policy, "keeps_no_state", False) is True:
        return
    reader = LogitsReader(policy, name=name, n_slots=engine.n_slots, space=engine.action_space)
    observations, _, first = engine.observe()
    before, again = reader.read(observations, first), reader.read(observations, first)
    if not np.array_equal(before, again):
        raise PolicyError(
            f"The policy {name} returned different logits for the same observations: it keeps a state of its own, or "
            f"draws random numbers (dropout: call eval()). {_REMEDY}"
        )
    turned = reader.read(_reversed(observations), first[::-1])[::-1]
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


def _reversed(observations: Any) -> Any:
    if isinstance(observations, Mapping):
        return {key: np.ascontiguousarray(each[::-1]) for key, each in observations.items()}
    return np.ascontiguousarray(observations[::-1])
