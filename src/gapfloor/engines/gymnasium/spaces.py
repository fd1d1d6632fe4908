"""Spaces of Gymnasium in the forms that play needs, and back.

Observations become arrays with one row per slot. Boxes, discrete and binary spaces become one array; dictionaries and
tuples become a dict of arrays, nested ones with their keys joined by `/`. Text (MiniGrid's mission) becomes an array of
strings of a fixed width.

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
from gapfloor.engines.engine import Observations
from gapfloor.errors import UsageError

#: Characters kept of a text whose space names no length of its own.
TEXT_WIDTH = 256


@dataclass(frozen=True)
class Part:
    """One array of the observation: where it is found, and what a row of it is."""

    path: tuple[str | int, ...]
    shape: tuple[int, ...]
    dtype: str

    @property
    def key(self) -> str:
        """Its name in the dict of arrays."""
        return "/".join(str(step) for step in self.path)


@dataclass(frozen=True)
class Layout:
    """How observations of one space are laid out."""

    parts: tuple[Part, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the observation is one array, not a dict of them."""
        return len(self.parts) == 1 and not self.parts[0].path

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one observation; empty for a dict."""
        return self.parts[0].shape if self.is_plain else ()

    def empty(self, n: int) -> Observations:
        """Rows that hold nothing yet."""
        arrays = {part.key: np.zeros((n, *part.shape), dtype=part.dtype) for part in self.parts}
        return arrays[""] if self.is_plain else arrays

    def write(self, rows: Observations, row: int, observation: Any) -> None:
        """Put one observation into its row."""
        for part in self.parts:
            value = observation
            for step in part.path:
                value = value[step]
            if part.dtype.startswith("<U") and len(value) > int(part.dtype[2:]):
                raise UsageError(
                    f"The text '{part.key}' has {len(value)} characters and its space allows {part.dtype[2:]}: "
                    "use a wrapper that leaves it out."
                )
            array = rows if self.is_plain else rows[part.key]
            array[row] = _fitted(value, part.shape) if part.shape else value

    def describe(self) -> str:
        """The observation in words."""
        return ", ".join(
            f"{part.key + ' ' if part.key else ''}{'text' if part.dtype[:2] == '<U' else np.dtype(part.dtype).name}"
            f"{'x'.join(['', *map(str, part.shape)]) if not part.shape else ' ' + 'x'.join(map(str, part.shape))}"
            for part in self.parts
        )


def _fitted(value: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The array in its declared shape; only sides of length 1 may differ, because others would mix up its values."""
    array = np.asarray(value)
    if array.shape != shape and [n for n in array.shape if n != 1] != [n for n in shape if n != 1]:
        raise ValueError(f"its shape is {array.shape}, not {shape}")
    return array.reshape(shape)


def layout_of(space: Any) -> Layout:
    """The layout of a Gymnasium space; refuses spaces that have no fixed shape."""
    return Layout(tuple(_parts(space, ())))


def _parts(space: Any, path: tuple[str | int, ...]) -> list[Part]:
    from gymnasium import spaces

    inner: Mapping[Any, Any] | None = None
    if isinstance(space, spaces.Dict):
        inner = space.spaces
    elif isinstance(space, spaces.Tuple):
        inner = dict(enumerate(space.spaces))
    if inner is not None:
        return [part for key, each in inner.items() for part in _parts(each, (*path, key))]
    # MiniGrid's mission has its own type of space, which is not a Text; BabyAI's is derived from it.
    if any(kind.__name__ in ("Text", "MissionSpace") for kind in type(space).__mro__):
        width = getattr(space, "max_length", TEXT_WIDTH)
        return [Part(path, (), f"<U{width}")]
    fixed = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    if not isinstance(space, fixed):
        where = f" at '{'/'.join(map(str, path))}'" if path else ""
        raise UsageError(
            f"Observations of the space {type(space).__name__}{where} have no fixed shape: "
            "turn them into arrays with a wrapper."
        )
    dtype = np.dtype(space.dtype if space.dtype is not None else np.int64)
    return [Part(path, tuple(space.shape or ()), dtype.str)]


def row_bytes(observations: Observations, row: int) -> bytes:
    """One slot's observation as bytes, whatever its form: equal bytes are equal observations."""
    if isinstance(observations, Mapping):
        return b"".join(array[row].tobytes() for array in observations.values())
    content: bytes = observations[row].tobytes()
    return content


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

    def each(self, actions: npt.NDArray[Any]) -> list[Any]:
        """The actions of several environments, as these take them."""
        if isinstance(self.space, Discrete):
            if not self.space.factors:
                # Whole numbers as Python's own: some environments look them up in a dict.
                numbers: list[Any] = (actions + self.start).tolist()
                return numbers
            actions = np.stack(np.unravel_index(actions, self.space.factors), axis=-1) + np.array(self.start)
        if self.is_tuple:
            return [tuple(row.tolist()) for row in actions]
        return [row.astype(self.dtype).reshape(self.shape) for row in actions]

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
    if isinstance(space, spaces.Tuple) and all(isinstance(each, spaces.Discrete) for each in space.spaces):
        sizes = [int(each.n) for each in space.spaces]
        return ActionForm(several(sizes), tuple(int(each.start) for each in space.spaces), is_tuple=True)
    if isinstance(space, spaces.MultiDiscrete):
        sizes, low = np.ravel(space.nvec).tolist(), np.ravel(getattr(space, "start", 0 * space.nvec))
    elif isinstance(space, spaces.MultiBinary):
        sizes, low = [2] * math.prod(space.shape), np.zeros(math.prod(space.shape))
    elif isinstance(space, spaces.Box) and math.prod(space.shape):
        low, high = (np.ravel(bound).astype(np.float64) for bound in (space.low, space.high))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise UsageError(
                f"The actions of {game} have no bounds ({space}), so no uniform action exists: use a wrapper that "
                "states them, e.g. gymnasium.wrappers.TransformAction in a function of yours."
            )
        if not (low < high).all():
            raise UsageError(
                f"The actions of {game} go from {low.tolist()} to {high.tolist()}: each low must be below its high."
            )
        sizes = (high - low + 1).astype(int).tolist()
    else:
        raise UsageError(
            f"The actions of {game} are {space}: gapfloor measures Discrete, MultiDiscrete, MultiBinary and Box, and "
            "tuples of Discrete; use a wrapper that offers one of these."
        )
    kind, shape = np.dtype(space.dtype), tuple(space.shape)
    if isinstance(space, spaces.Box) and kind.kind not in "iu":
        return ActionForm(Box(tuple(low.tolist()), tuple(high.tolist())), 0, shape, kind.str)
    return ActionForm(several(sizes), tuple(low.astype(int).tolist()), shape, kind.str)


def mask_source(env: Any, info: Any) -> str:
    """Where an environment says which actions are legal: `method` or `info`; empty where it does not."""
    if callable(mask_method(env)):
        return "method"
    return "info" if isinstance(info, Mapping) and "action_mask" in info else ""


def mask_method(env: Any) -> Any:
    """The method `action_masks` of an environment or of what it wraps; None where there is none."""
    found = getattr(env, "get_wrapper_attr", None)
    try:
        return found("action_masks") if found is not None else getattr(env, "action_masks", None)
    except AttributeError:
        return None
