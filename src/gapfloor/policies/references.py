"""References: policies that know nothing. `uniform` is the floor; the others are stricter.

A reference does not look at observations, so no rule applies to it: records hold its name in place of the rule, and
"uniform" alone there means the floor. References that need a network, or that are chosen by playing (best-constant,
random-weights, blind, upper), are in `gapfloor.play.references`.
"""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import Actions, ActionSpace, Discrete, Masks
from gapfloor.errors import UsageError, unknown_name

Floats = npt.NDArray[np.float64]


class Reference(ABC):
    """A policy that does not look at observations; `str(reference)` is its name in records."""

    is_deterministic = False
    """Whether an episode depends on its level alone."""

    @abstractmethod
    def choose(
        self, uniforms: Floats, space: ActionSpace, last: Actions, legal: Masks | None = None
    ) -> Actions:
        """One action for each row of uniform numbers.

        `last` holds each slot's last action, or `space.nothing` when an episode starts; `legal` marks the actions that
        may be taken.
        """

    def check(self, space: ActionSpace) -> None:  # noqa: B027 (most references fit every engine)
        """Refuse an engine in which this reference cannot play."""


@dataclass(frozen=True)
class Uniform(Reference):
    """Every action equally often: the random floor."""

    def choose(
        self, uniforms: Floats, space: ActionSpace, last: Actions, legal: Masks | None = None
    ) -> Actions:
        return space.uniform(uniforms, legal)

    def __str__(self) -> str:
        return "uniform"


#: The reference that takes the action of zeros.
ZERO = "zero"


@dataclass(frozen=True)
class Constant(Reference):
    """Always the same action: a number, one number per dimension with slashes, or the action of zeros.

    That of zeros (or the one nearest to it) is what a controller does that is switched off, and is called `zero`.
    Where a mask forbids it, the next legal action is taken, counting on from the last to the first.
    """

    action: str
    is_deterministic = True

    def choose(
        self, uniforms: Floats, space: ActionSpace, last: Actions, legal: Masks | None = None
    ) -> Actions:
        action = np.asarray(self._action(space))
        if legal is None:
            return np.repeat(action[None], len(uniforms), axis=0)
        assert isinstance(space, Discrete)  # a box has no masks
        distance = (np.arange(space.n) - action) % space.n
        nearest: Actions = np.argmin(np.where(legal, distance, space.n), axis=1)
        return nearest

    def check(self, space: ActionSpace) -> None:
        self._action(space)

    def _action(self, space: ActionSpace) -> Any:
        return space.zero() if self.action == ZERO else space.read(self.action)

    def __str__(self) -> str:
        return ZERO if self.action == ZERO else f"constant:{self.action}"


@dataclass(frozen=True)
class Sticky(Reference):
    """Repeats the last action with probability `stay`, else takes a uniform one: random play that moves further."""

    stay: float

    def choose(
        self, uniforms: Floats, space: ActionSpace, last: Actions, legal: Masks | None = None
    ) -> Actions:
        decides = uniforms[:, 0] if space.width else uniforms
        column = last[:, 0] if space.width else last
        has_last = column >= 0 if column.dtype.kind == "i" else ~np.isnan(column)
        if legal is not None and not space.width:
            has_last &= legal[np.arange(len(last)), np.maximum(last, 0)]
        stays = (decides < self.stay) & has_last
        # Above `stay` the number is itself uniform on [stay, 1): one draw is enough for both decisions.
        rescaled = np.where(has_last, (decides - self.stay) / (1 - self.stay), decides)
        numbers = np.clip(rescaled, 0, _BELOW_ONE)
        if not space.width:
            return np.where(stays, last, space.uniform(numbers, legal))
        fresh = space.uniform(np.column_stack([numbers, uniforms[:, 1:]]), legal)
        return np.where(stays[:, None], last, fresh)

    def __str__(self) -> str:
        return f"sticky:{repr(self.stay).removesuffix('.0')}"


#: The largest number below 1: a rescaled number must stay below 1.
_BELOW_ONE = np.nextafter(1.0, 0.0)


#: Every form that `--reference` takes; A is an action's number, P a probability. Those after the first four are played
#: by `gapfloor.play.references`.
REFERENCE_FORMS = (
    "uniform", "zero", "constant:A", "sticky:P", "best-constant", "random-weights:ENCODER:COUNT", "blind:RUN",
    "upper:POLICY",
)  # fmt: skip

_ACTION = re.compile(r"-?[0-9.]+(e-?[0-9]+)?(/-?[0-9.]+(e-?[0-9]+)?)*")


def parse_reference(text: str) -> Reference:
    """Read a reference's name.

    >>> str(parse_reference("constant:7"))
    'constant:7'
    """
    name, _, argument = text.strip().partition(":")
    if name == "uniform" and not argument:
        return Uniform()
    if name == ZERO and not argument:
        return Constant(ZERO)
    if name == "constant":
        if not _ACTION.fullmatch(argument):
            raise UsageError(
                f"The reference '{text}' needs an action's number after the colon, e.g. constant:7; where an action "
                "has several numbers, write constant:0/0.5."
            )
        return Constant(str(int(argument)) if argument.isdecimal() else argument)
    if name == "sticky":
        with contextlib.suppress(ValueError):
            if 0 < float(argument) < 1:
                return Sticky(float(argument))
        raise UsageError(f"The reference '{text}' needs a probability between 0 and 1, e.g. sticky:0.9.")
    raise unknown_name("reference", text, REFERENCE_FORMS)
