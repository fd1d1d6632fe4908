"""Observations of any Gymnasium space as arrays with one row per slot.

Boxes, discrete and binary spaces become one array; dictionaries and tuples become a dict of arrays, nested ones with
their keys joined by `/`. Text (MiniGrid's mission) becomes an array of strings of a fixed width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
    if _is_text(space):
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


def _is_text(space: Any) -> bool:
    # MiniGrid's mission has its own type of space, which is not a Text; BabyAI's is derived from it.
    return any(kind.__name__ in ("Text", "MissionSpace") for kind in type(space).__mro__)


def row_bytes(observations: Observations, row: int) -> bytes:
    """One slot's observation as bytes, whatever its form: equal bytes are equal observations."""
    if isinstance(observations, Mapping):
        return b"".join(array[row].tobytes() for array in observations.values())
    content: bytes = observations[row].tobytes()
    return content
