"""A policy's content hash: what makes two policies the same, whatever they are called.

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
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import Engine, map_arrays
from gapfloor.errors import PolicyError
from gapfloor.policies.policy import LogitsReader, Policy, StatefulPolicy

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
