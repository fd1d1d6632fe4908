"""What the harness needs of an engine: a batch of slots that step, report their level, and can be cloned.

An `EngineSpec` is the recipe (which game, mode and options) and is what a cell records; an `Engine` is
a running batch made from it. `gapfloor.engines.registry` finds the engine that a recipe names. The names, packages and
limits of the engines that gapfloor knows are in `data/engines.toml`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions, ActionSpace, Masks
from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.settings import shipped

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

    def option(self, name: str) -> Option | None:
        """An option, if it was given."""
        return dict(self.options).get(name)


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """One engine, whether or not it is installed; `data/engines.toml` says what the fields are."""

    name: str
    """The name that cells record."""
    title: str
    module: str
    prefix: str
    package: str
    extra: str
    games: str
    wheels: str = ""
    never_clones: bool = False
    """Whether the engine can save no state at all."""

    @property
    def install_command(self) -> str:
        """The command that installs it."""
        return f'pip install "gapfloor[{self.extra}]"'

    def installed_version(self) -> str:
        """The installed version of its package; otherwise the error says how to install it."""
        version = package_version(self.package)
        if version is None:
            raise MissingExtraError(f"{self.title} is not installed: {self.install_command}{self.wheels}.")
        return version

    def check_version(self, measured: str, installed: str) -> None:
        """Refuse a specification that was made with another version."""
        if measured != installed:
            raise UsageError(
                f"This was made with {self.title} {measured} and {installed} is installed: install that version, or "
                "measure again in another --store."
            )


#: The wheel with ProcGen's engine for Python 3.11 and 3.12; later ones have procgen-gym.
MIRROR = "procgen-mirror"

ENGINES: Mapping[str, EngineFacts] = {
    name: EngineFacts(name=name, **facts) for name, facts in shipped("data/engines.toml")["engines"].items()
}
GYMNASIUM, ENVPOOL = ENGINES["gymnasium"], ENGINES["envpool"]
PROCGEN = ENGINES["procgen"]
if sys.version_info >= (3, 13):
    PROCGEN = replace(PROCGEN, package="procgen-gym")
    ENGINES = {**ENGINES, PROCGEN.name: PROCGEN}


@functools.cache
def package_version(package: str) -> str | None:
    """The version of an installed package; None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
