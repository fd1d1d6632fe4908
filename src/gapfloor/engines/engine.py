"""What the harness needs of an engine: a batch of slots that step, report their level, and can be cloned.

An `EngineSpec` is the recipe (which game, mode and options) and is what a cell records; an `Engine` is
a running batch made from it. `gapfloor.engines.registry` finds the engine that a recipe names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions, ActionSpace, Masks

#: A batch of observations: one array, or a dict of arrays, with one row per slot.
Observations = Any
#: The saved state of a slot, in a form that the same engine can load again.
State = Any
#: A value that an option of an engine can have.
Option = bool | int | float | str
Step = tuple[Observations, npt.NDArray[np.floating[Any]], npt.NDArray[np.bool_]]


def map_arrays(observations: Observations, change: Callable[[Any], Any]) -> Any:
    """What a function makes of observations: of the one array, or of each array of a dict."""
    if isinstance(observations, Mapping):
        return {key: change(each) for key, each in observations.items()}
    return change(observations)


class Engine(Protocol):
    """A batch of slots. Arrays that it returns are views, valid until the next `step` or `load`."""

    n_slots: int
    n_actions: int
    """The number of numbered actions; 0 where actions are rows."""
    noop: Any
    """The action that idle slots are given."""
    action_names: tuple[str, ...]
    """Names of numbered actions; empty where actions are rows."""
    observation_shape: tuple[int, ...]

    @property
    def action_space(self) -> ActionSpace:
        """Numbered actions, or rows of numbers (`gapfloor.actions.spaces`)."""
        ...

    @property
    def masks(self) -> Masks | None:
        """Which actions are legal in each slot's current state; None where every action always is."""
        ...

    @property
    def can_clone(self) -> bool:
        """Whether `save` and `load` work; without them there is no calibration."""
        ...

    @property
    def level_seeds(self) -> npt.NDArray[np.integer[Any]]:
        """The level that each slot is on."""
        ...

    def observe(self) -> Step:
        """Observations, the rewards that led to them, and whether each starts an episode."""
        ...

    def step(self, actions: Actions) -> Step:
        """Apply one action per slot: whole numbers, or one row per slot.

        Where an episode ends, the next observation is already the next level's first.
        """
        ...

    def begin(self, slot: int, level_seed: int) -> None:
        """Put one slot at the start of a level, whatever it played before."""
        ...

    def save(self, slot: int) -> State:
        """The whole state of one slot."""
        ...

    def load(self, slot: int, state: State) -> None:
        """Put one slot into a saved state."""
        ...

    def frame(self, slot: int) -> npt.NDArray[np.uint8] | None:
        """The slot's current picture, height x width x 3, or None where there is none."""
        ...

    def close(self) -> None:
        """Free the engine's memory."""
        ...


@dataclass(frozen=True)
class EngineSpec:
    """Which engine, game, mode and options: everything about the engine that can change an episode."""

    engine: str
    version: str
    game: str
    mode: str
    options: tuple[tuple[str, Option], ...] = ()
