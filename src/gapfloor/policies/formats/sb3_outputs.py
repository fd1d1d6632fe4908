"""The parameters of a Stable-Baselines3 network's distribution, for every kind of network and action space.

Actor-critic networks (PPO, A2C, TRPO, MaskablePPO, RecurrentPPO) hand out a distribution object; SAC and TQC have an
actor with a mean and a deviation before squashing; TD3 and DDPG return the action itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gapfloor.actions.distributions import Categoricals, Deterministic, Gaussian, SquashedGaussian, as_floats
from gapfloor.actions.spaces import ActionSpace, Box, Discrete, several
from gapfloor.errors import PolicyError
from gapfloor.policies.notes import note_once


def distribution_output(distribution: Any, *, name: str) -> Any:
    """What an SB3 distribution says: logits of numbered actions, or a distribution of ours."""
    kind = type(distribution).__name__
    parts: Any = getattr(distribution, "distributions", None) or getattr(distribution, "distribution", None)
    if isinstance(parts, (list, tuple)):
        return Categoricals(tuple(each.logits for each in parts))
    logits = getattr(parts, "logits", None)
    if logits is not None and "Bernoulli" in kind:
        ones = as_floats(logits)
        return Categoricals(tuple(np.stack([0 * each, each], axis=1) for each in ones.T))
    if logits is not None and logits.ndim == 2:
        return logits.cpu().numpy()
    if not hasattr(parts, "loc"):
        raise PolicyError(
            f"The {kind} of {name} is not a distribution that gapfloor knows: it reads categorical, Bernoulli and "
            "Gaussian ones."
        )
    if "StateDependentNoise" in kind:
        note_once(
            f"{name} was trained with noise that depends on the state (use_sde) and is kept for several steps; under "
            "the rule sampled it is drawn afresh at every step."
        )
    squashes = "Squashed" in kind or getattr(distribution, "bijector", None) is not None
    made = SquashedGaussian if squashes else Gaussian
    return made(as_floats(parts.loc), as_floats(parts.scale))


def actor_output(network: Any, tensors: Any, *, name: str) -> SquashedGaussian | Deterministic:
    """What the actor of SAC or TQC (mean and deviation), or of TD3 or DDPG (the action), says."""
    actor = network.actor
    if not hasattr(actor, "get_action_dist_params"):
        return Deterministic(network.unscale_action(as_floats(actor(tensors))))
    mean, log_deviation, keywords = actor.get_action_dist_params(tensors)
    if keywords:
        inner = actor.action_dist.proba_distribution(mean, log_deviation, **keywords)
        found: SquashedGaussian = distribution_output(inner, name=name)
        return found
    return SquashedGaussian(as_floats(mean), np.exp(as_floats(log_deviation)))


def space_of(actions: Any) -> ActionSpace:
    """Our description of the Gymnasium space that a network acts in."""
    from gymnasium import spaces

    if isinstance(actions, spaces.Discrete):
        return Discrete(int(actions.n))
    if isinstance(actions, spaces.Box):
        return Box(*(tuple(np.ravel(bound).astype(float).tolist()) for bound in (actions.low, actions.high)))
    sizes = actions.nvec if isinstance(actions, spaces.MultiDiscrete) else [2] * int(np.prod(actions.shape))
    return several([int(size) for size in np.ravel(sizes)])
