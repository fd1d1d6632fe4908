"""What actions there are: numbered ones, or a box of real numbers.

Play sees an action as a whole number where the actions can be numbered (`Discrete`), and as a row of real numbers
otherwise. The actions of a MultiDiscrete or MultiBinary space are numbered too, in the order in which nested loops
would count them, so that rules, classes, entropies and references are those of any numbered set; `factors` remembers
the sizes of its dimensions. Engines translate to and from what the environment expects.

Every space draws uniformly from numbers that the caller supplies, so that an episode depends on its own stream alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]
#: One action per row: whole numbers `[rows]`, or rows of numbers `[rows, width]`.
Actions = npt.NDArray[Any]

#: Spaces of several whole numbers have at most this many actions.
MOST_NUMBERED = 1024

#: A constant action is looked for among at most this many; see `constants`.
MOST_CONSTANTS = 243


@dataclass(frozen=True)
class Discrete:
    """Actions numbered from 0.

    >>> str(Discrete(6)), str(Discrete(6, factors=(3, 2)))
    ('Discrete(6)', 'MultiDiscrete(3, 2)')
    """

    n: int
    factors: tuple[int, ...] = ()
    """Sizes of the dimensions where the environment's action has several; the last one varies fastest."""
    width = 0
    """Numbers per action; 0: an action is one whole number without an axis of its own."""
    nothing = -1
    """What stands in the place of an action that has not been taken yet."""

    def uniform(self, uniforms: Floats, legal: Masks | None = None) -> Actions:
        """One uniform action per row of numbers from [0, 1); `legal` marks the actions that may be taken."""
        if legal is None:
            return (uniforms * self.n).astype(np.int64)
        return _nth_legal(legal, (uniforms * legal.sum(axis=1)).astype(np.int64))

    def random(self, rng: np.random.Generator, rows: int) -> Actions:
        """Uniform actions for checks and probes, where no stream is prescribed."""
        return rng.integers(0, self.n, rows)

    def zero(self) -> int:
        """The action of zeros, or the one nearest to it."""
        return 0

    def read(self, text: str) -> int:
        """The action that a reference's name holds after the colon; refused where it does not exist."""
        if text.isdecimal() and int(text) < self.n:
            return int(text)
        raise UsageError(
            f"The reference constant:{text} names an action that does not exist: actions go from 0 to {self.n - 1}."
        )

    def constants(self) -> list[str]:
        """The constant actions from which the best one is chosen, each as `read` takes it."""
        return [str(action) for action in range(self.n)]

    def tallies(self, actions: Actions) -> npt.NDArray[np.int64]:
        """What is added up over the steps of an episode, one row per action."""
        return np.eye(self.n, dtype=np.int64)[actions]

    def summary(self, totals: npt.NDArray[Any], n_steps: int) -> dict[str, Any]:
        """The fields of a cell record that describe the actions taken, from the sum of all tallies."""
        return {"action_counts": [int(count) for count in totals]}

    def joint(self, logits: Sequence[Floats]) -> Floats:
        """Logits of the numbered actions from those of each dimension, whose probabilities multiply."""
        total = np.asarray(logits[0], dtype=np.float64)
        for each in logits[1:]:
            total = (total[:, :, None] + np.asarray(each)[:, None, :]).reshape(len(total), -1)
        return total

    def __str__(self) -> str:
        if self.factors:
            return f"MultiDiscrete({', '.join(map(str, self.factors))})"
        return f"Discrete({self.n})"


@dataclass(frozen=True)
class Box:
    """Real numbers between finite bounds, as one row however the environment arranges them; see `Discrete`."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    nothing = math.nan

    @property
    def width(self) -> int:
        return len(self.low)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Both bounds as arrays."""
        return np.array(self.low), np.array(self.high)

    def uniform(self, uniforms: Floats, legal: Masks | None = None) -> Actions:
        low, high = self.bounds
        drawn: Floats = low + uniforms * (high - low)
        return drawn

    def random(self, rng: np.random.Generator, rows: int) -> Actions:
        return self.uniform(rng.random((rows, self.width)))

    def zero(self) -> Floats:
        return np.clip(np.zeros(self.width), *self.bounds)

    def read(self, text: str) -> Floats:
        try:
            action = np.array([float(part) for part in text.split("/")])
        except ValueError:
            action = np.array([math.nan])
        if action.size == 1:
            action = np.repeat(action, self.width)
        low, high = self.bounds
        if action.size != self.width or not ((low <= action) & (action <= high)).all():
            raise UsageError(
                f"The reference constant:{text} is not an action of {self}: give one number for all dimensions or "
                f"{self.width} numbers with slashes, within the bounds, e.g. constant:{self._written(self.zero())}."
            )
        return action

    def constants(self) -> list[str]:
        """A grid of low, middle and high in each dimension, or one dimension at a time where that is too large."""
        low, high = self.bounds
        middle = (low + high) / 2
        if 3**self.width <= MOST_CONSTANTS:
            grid = np.stack(np.meshgrid(*zip(low, middle, high, strict=True), indexing="ij"), axis=-1)
            return [self._written(action) for action in grid.reshape(-1, self.width)]
        base = [repr(float(value)) for value in self.zero()]
        found = ["/".join(base)]
        for at in range(self.width):
            for value in (low[at], high[at]):
                found.append("/".join([*base[:at], repr(float(value)), *base[at + 1 :]]))
        return list(dict.fromkeys(found))

    def _written(self, action: Floats) -> str:
        return "/".join(repr(float(value)) for value in action)

    def tallies(self, actions: Actions) -> Floats:
        low, high = self.bounds
        return np.concatenate([actions, actions**2, actions <= low, actions >= high], axis=1)

    def summary(self, totals: npt.NDArray[Any], n_steps: int) -> dict[str, Any]:
        mean, square, at_low, at_high = (totals / n_steps).reshape(4, self.width)
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        return {
            "action_counts": None,
            "action_space": str(self),
            "action_mean": mean.tolist(),
            "action_deviation": deviation.tolist(),
            "action_at_low": at_low.tolist(),
            "action_at_high": at_high.tolist(),
        }

    def __str__(self) -> str:
        if len({*zip(self.low, self.high, strict=True)}) == 1:
            return f"Box({self.low[0]:g} to {self.high[0]:g}, {self.width} dimension{'s' * (self.width > 1)})"
        pairs = zip(self.low, self.high, strict=True)
        return f"Box({', '.join(f'{low:g} to {high:g}' for low, high in pairs)})"


#: Every set of actions that is measured.
ActionSpace = Discrete | Box


def several(sizes: Sequence[int]) -> Discrete:
    """The space of several whole numbers at once; refused where it has too many actions to be numbered."""
    n = math.prod(sizes)
    if n > MOST_NUMBERED:
        raise UsageError(
            f"MultiDiscrete({', '.join(map(str, sizes))}) has {n:,} actions, and gapfloor numbers at most "
            f"{MOST_NUMBERED:,}: use a wrapper with fewer."
        )
    return Discrete(n, factors=tuple(sizes))


def split(columns: npt.NDArray[Any], sizes: Sequence[int]) -> list[npt.NDArray[Any]]:
    """The columns that belong to each dimension."""
    return np.split(columns, np.cumsum(sizes)[:-1], axis=1)


def joint_masks(legal: Masks, space: Discrete) -> Masks:
    """Which numbered actions are legal where each dimension has a mask of its own."""
    parts = split(legal, space.factors)
    total = parts[0]
    for each in parts[1:]:
        total = (total[:, :, None] & each[:, None, :]).reshape(len(total), -1)
    return total


def _nth_legal(legal: Masks, numbers: npt.NDArray[np.int64]) -> Actions:
    """The action of each row that has `numbers` legal ones before it."""
    chosen: npt.NDArray[np.int64] = (np.cumsum(legal, axis=1) <= numbers[:, None]).sum(axis=1)
    return chosen
