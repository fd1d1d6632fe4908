"""What the harness needs of an engine: a batch of slots that step, tell their level, and can be cloned.

An `EngineSpec` is the recipe (which game, mode and options) and is what a cell records; an `Engine` is
a running batch made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Observations = npt.NDArray[Any]
Step = tuple[Observations, npt.NDArray[np.float32], npt.NDArray[np.bool_]]


class Engine(Protocol):
    """A batch of slots. Arrays that it returns are views, valid until the next `step` or `load`."""

    n_slots: int
    n_actions: int
    noop: int
    action_names: tuple[str, ...]
    observation_shape: tuple[int, ...]

    @property
    def level_seeds(self) -> npt.NDArray[np.integer[Any]]:
        """The level that each slot is on."""
        ...

    def observe(self) -> Step:
        """Observations, the rewards that led to them, and whether each starts an episode."""
        ...

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> Step:
        """Apply one action a slot. Where an episode ends, the next observation is already the next level's first."""
        ...

    def save(self, slot: int) -> bytes:
        """The whole state of one slot."""
        ...

    def load(self, slot: int, state: bytes) -> None:
        """Put one slot into a saved state."""
        ...

    def initial_state(self, level_seed: int) -> bytes:
        """The state in which a level starts."""
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
    options: tuple[tuple[str, bool], ...] = ()
