"""Actions of any Gymnasium space: our description of it, the environment's own form of an action, and legal actions.

Play numbers actions from 0 or writes them as a row (`gapfloor.actions.spaces`); the environment wants a whole number
from its own start, an array of a shape and type, or real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Box, Discrete, Masks, joint_masks, several
from gapfloor.errors import UsageError


@dataclass(frozen=True)
class ActionForm:
    """A space and how the environment writes one of its actions."""

    space: Discrete | Box
    start: int | tuple[int, ...] = 0
    """The environment's number of our action 0, or of 0 in each dimension."""
    shape: tuple[int, ...] = ()
    dtype: str = "int64"
    is_tuple: bool = False
    """Whether the environment takes a tuple of whole numbers."""

    def to_environment(self, action: Any) -> Any:
        """One action as the environment takes it."""
        space = self.space
        if isinstance(space, Discrete):
            if not space.factors:
                return action + self.start
            action = np.array(np.unravel_index(action, space.factors))
        if not isinstance(space, Box):
            action = action + np.array(self.start)
        if self.is_tuple:
            return tuple(np.asarray(action).tolist())
        return np.asarray(action).astype(self.dtype).reshape(self.shape)

    def each(self, actions: npt.NDArray[Any]) -> list[Any]:
        """The actions of several environments, one after the other."""
        if isinstance(self.space, Discrete) and not self.space.factors:
            # Whole numbers as Python's own: some environments look them up in a dict.
            numbers: list[Any] = (actions + self.start).tolist()
            return numbers
        return [self.to_environment(action) for action in (actions if actions.ndim > 1 else actions.tolist())]

    def legal_row(self, mask: Any, *, where: str) -> npt.NDArray[np.bool_]:
        """A mask of the environment as one row; a mask per dimension becomes one of the numbered actions."""
        parts = mask if isinstance(mask, (tuple, list)) else [mask]
        flat: Masks = np.concatenate([np.asarray(part).astype(bool).reshape(-1) for part in parts])
        space = self.space
        assert isinstance(space, Discrete)  # a box has no masks
        if space.factors and flat.size == sum(space.factors):
            flat = joint_masks(flat[None], space)[0]
        if flat.size != space.n:
            raise UsageError(f"The mask of {where} has {flat.size} entries, but its actions are {space}.")
        if not flat.any():
            raise UsageError(f"No action is legal in a state of {where}: an episode must end before that.")
        return flat


def action_form(space: Any, *, game: str) -> ActionForm:
    """Our form of a Gymnasium action space."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return ActionForm(Discrete(int(space.n)), start=int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        starts = tuple(int(each) for each in np.ravel(getattr(space, "start", np.zeros_like(space.nvec))))
        return _several([int(n) for n in np.ravel(space.nvec)], starts, space)
    if isinstance(space, spaces.Tuple) and all(isinstance(each, spaces.Discrete) for each in space.spaces):
        sizes = [int(each.n) for each in space.spaces]
        return ActionForm(several(sizes), tuple(int(each.start) for each in space.spaces), is_tuple=True)
    if isinstance(space, spaces.MultiBinary):
        n = math.prod(space.shape)
        return _several([2] * n, (0,) * n, space)
    if isinstance(space, spaces.Box) and math.prod(space.shape):
        low, high = _bounds(space, game=game)
        if np.dtype(space.dtype).kind in "iu":
            return _several((high - low + 1).astype(int).tolist(), tuple(low.astype(int).tolist()), space)
        return ActionForm(
            Box(tuple(low.tolist()), tuple(high.tolist())), 0, tuple(space.shape), np.dtype(space.dtype).str
        )
    raise UsageError(
        f"The actions of {game} are {space}: gapfloor measures Discrete, MultiDiscrete, MultiBinary and Box, and "
        "tuples of Discrete; use a wrapper that offers one of these."
    )


def _several(sizes: list[int], starts: tuple[int, ...], space: Any) -> ActionForm:
    return ActionForm(several(sizes), starts, tuple(space.shape), np.dtype(space.dtype).str)


def _bounds(space: Any, *, game: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The bounds of a box in one row."""
    low, high = (np.ravel(bound).astype(np.float64) for bound in (space.low, space.high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise UsageError(
            f"The actions of {game} have no bounds ({space}), so no uniform action exists: use a wrapper that states "
            "them, e.g. gymnasium.wrappers.TransformAction in a function of yours."
        )
    if not (low < high).all():
        raise UsageError(
            f"The actions of {game} go from {low.tolist()} to {high.tolist()}: each low must be below its high."
        )
    return low, high


def mask_source(env: Any, info: Any) -> str:
    """Where an environment says which actions are legal: `method` or `info`; empty where it does not."""
    if callable(_mask_method(env)):
        return "method"
    return "info" if isinstance(info, Mapping) and "action_mask" in info else ""


def read_mask(env: Any, info: Mapping[str, Any], source: str) -> Any:
    """The mask of the environment's current state."""
    return _mask_method(env)() if source == "method" else info["action_mask"]


def _mask_method(env: Any) -> Any:
    found = getattr(env, "get_wrapper_attr", None)
    try:
        return found("action_masks") if found is not None else getattr(env, "action_masks", None)
    except AttributeError:
        return None
