"""Policies that the user has in memory: torch modules, CleanRL agents and Stable-Baselines3 models.

Each is recognised by what it is, without importing a library that the user has not imported.
"""

from __future__ import annotations

import copy
import sys
from typing import Any

from gapfloor.policies.notes import note_once
from gapfloor.policies.policy import Policy, StatefulPolicy

#: What every model and every network of Stable-Baselines3 is derived from.
_OF_SB3 = {
    ("stable_baselines3.common.base_class", "BaseAlgorithm"),
    ("stable_baselines3.common.policies", "BasePolicy"),
}


def policy_in_memory(given: Any, *, device: str = "cpu") -> Policy | StatefulPolicy | None:
    """A policy of an object of another library, or None if it is not one of those that are known."""
    kinds = {(cls.__module__, cls.__name__) for cls in type(given).__mro__}
    if kinds & _OF_SB3:
        return _of_sb3(given, device=device)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        name = type(given).__name__
        if _acts_without_forward(given, torch):
            from gapfloor.policies.formats.cleanrl import policy_of_agent

            return policy_of_agent(_copied(given), where=f"The {name} in memory", name=name, device=device)
        from gapfloor.policies.formats.module import policy_of_module

        return policy_of_module(_copied(given), name=name, device=device)
    return None


def _acts_without_forward(module: Any, torch: Any) -> bool:
    """Whether a module is an agent as in CleanRL, which has `get_action_and_value` and no `forward`."""
    # Not type(module).forward: TorchScript's modules raise an error there.
    has_forward = any("forward" in vars(cls) for cls in type(module).__mro__ if cls is not torch.nn.Module)
    return not has_forward and callable(getattr(module, "get_action_and_value", None))


def _of_sb3(given: Any, *, device: str) -> Policy | StatefulPolicy:
    """The policy of a network or a model, with the normalisation and frame stack of the model's environments."""
    from gapfloor.policies.formats.preprocessing import with_preparation
    from gapfloor.policies.formats.sb3 import header_of, policy_of_network

    network = getattr(given, "policy", given)
    cls = type(network)
    steps, seed = getattr(given, "_total_timesteps", None), getattr(given, "seed", None)
    policy = policy_of_network(
        _copied(network),
        name=cls.__name__,
        where=f"The {cls.__name__} in memory",
        header=header_of((cls.__module__, cls.__name__), steps, seed),
        exploration=getattr(given, "exploration_rate", None),
        device=device,
    )
    if network is given:
        return policy
    preparation = _preparation_of(given.get_env())
    if not preparation.is_empty:
        parts = [
            "normalised with the statistics of its VecNormalize" if preparation.statistics else "",
            f"stacked as by its VecFrameStack ({preparation.stack.n} frames)" if preparation.stack else "",
        ]
        note_once(f"{type(given).__name__}: observations are {' and '.join(part for part in parts if part)}.")
    return with_preparation(policy, preparation)


def _copied(network: Any) -> Any:
    """A copy, so that training the network further does not change what is measured."""
    # SB3 keeps its last distribution, whose tensors belong to a computation and cannot be copied.
    shared = {id(part): part for part in (getattr(network, "action_dist", None),) if part is not None}
    try:
        return copy.deepcopy(network, shared)
    except Exception:  # e.g. a module that keeps the tensors of its last call
        note_once(
            f"{type(network).__name__} cannot be copied, so it is used itself: do not train it meanwhile."
        )
        return network


def _preparation_of(environments: Any) -> Any:
    from gapfloor.policies.formats.normalisation import statistics_of
    from gapfloor.policies.formats.preprocessing import FrameStack, Preparation

    found: dict[str, Any] = {}
    while environments is not None:
        kind = type(environments).__name__
        if kind == "VecNormalize":
            found.setdefault("statistics", statistics_of(environments))
        elif kind == "VecFrameStack":
            found.setdefault("stack", FrameStack("framestack", environments.stacked_obs.n_stack))
        environments = getattr(environments, "venv", None)
    return Preparation(**found)
