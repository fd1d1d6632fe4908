"""References: policies that know nothing. `uniform` is the floor; the others are stricter.

A reference does not look at observations, so no rule applies to it: records hold its name in place of the rule, and
"uniform" alone there means the floor. References that need a network, or that are chosen by playing (best-constant,
random-weights, blind, upper), are in `gapfloor.play.references`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError, unknown_name

Floats = npt.NDArray[np.float64]
Actions = npt.NDArray[np.int64]


class Reference(ABC):
    """A policy that does not look at observations; `str(reference)` is its name in records."""

    @property
    @abstractmethod
    def is_deterministic(self) -> bool:
        """Whether an episode depends on its level alone."""

    remembers: bool = False
    """Whether the next action depends on the last one."""

    @abstractmethod
    def choose(self, uniforms: Floats, n_actions: int, last: Actions) -> Actions:
        """One action for each uniform number; `last` holds each slot's last action, or -1 when an episode starts."""

    def check(self, n_actions: int) -> None:  # noqa: B027 (most references fit every engine)
        """Refuse an engine in which this reference cannot play."""


@dataclass(frozen=True)
class Uniform(Reference):
    """Every action equally often: the random floor."""

    is_deterministic = False

    def choose(self, uniforms: Floats, n_actions: int, last: Actions) -> Actions:
        return (uniforms * n_actions).astype(np.int64)

    def __str__(self) -> str:
        return "uniform"


@dataclass(frozen=True)
class Constant(Reference):
    """Always the same action."""

    action: int
    is_deterministic = True

    def choose(self, uniforms: Floats, n_actions: int, last: Actions) -> Actions:
        return np.full(len(uniforms), self.action, dtype=np.int64)

    def check(self, n_actions: int) -> None:
        if self.action >= n_actions:
            raise UsageError(
                f"The reference {self} names an action that does not exist: actions go from 0 to {n_actions - 1}."
            )

    def __str__(self) -> str:
        return f"constant:{self.action}"


@dataclass(frozen=True)
class Sticky(Reference):
    """Repeats the last action with probability `stay`, else takes a uniform one: random play that moves further."""

    stay: float
    is_deterministic = False
    remembers = True

    def choose(self, uniforms: Floats, n_actions: int, last: Actions) -> Actions:
        stays = (uniforms < self.stay) & (last >= 0)
        # Above `stay` the number is itself uniform on [stay, 1): one draw is enough for both decisions.
        rescaled = np.where(last >= 0, (uniforms - self.stay) / (1 - self.stay), uniforms)
        fresh = np.clip((rescaled * n_actions).astype(np.int64), 0, n_actions - 1)
        return np.where(stays, last, fresh)

    def __str__(self) -> str:
        return f"sticky:{repr(self.stay).removesuffix('.0')}"


#: The names of references on the command line; A is an action's number, P a probability.
REFERENCE_NAMES = ("uniform", "constant:A", "sticky:P")


def parse_reference(text: str) -> Reference:
    """Read a reference's name.

    >>> str(parse_reference("constant:7"))
    'constant:7'
    """
    name, _, argument = text.strip().partition(":")
    if name == "uniform" and not argument:
        return Uniform()
    if name == "constant":
        if not argument.isdecimal():
            raise UsageError(
                f"The reference '{text}' needs an action's number after the colon, e.g. constant:7."
            )
        return Constant(int(argument))
    if name == "sticky":
        return Sticky(_probability(text, argument))
    raise unknown_name("reference", text, REFERENCE_NAMES)


def _probability(text: str, argument: str) -> float:
    try:
        value = float(argument)
    except ValueError:
        value = float("nan")
    if not 0 < value < 1:
        raise UsageError(f"The reference '{text}' needs a probability between 0 and 1, e.g. sticky:0.9.")
    return value
