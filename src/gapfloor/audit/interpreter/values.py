"""What an expression can stand for, as far as reading alone can tell.

An expression has alternatives, each with the conditions under which it holds, the lines that led to it and where
a constant came from (a literal, a default, an option). Nothing is computed beyond what the text says.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, ModuleInfo


@dataclass(frozen=True)
class Mark:
    """A line that matters: file, number and what it shows."""

    file: str
    line: int
    what: str


@dataclass(eq=False)
class Binding:
    """What a parameter is bound to: an expression in its frame, and how it came there."""

    expression: ast.expr | None
    frame: Frame | None
    is_default: bool = False
    is_setting: bool = False
    """Whether a default can be set from a configuration file (gin)."""


@dataclass(eq=False, repr=False)
class Frame:
    """One call of a function (or a module's body) with its parameters bound; it knows who called it, and where."""

    module: ModuleInfo
    function: FunctionInfo | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)
    receiver: Alternative | None = None
    parent: Frame | None = None
    caller: Frame | None = None
    call: ast.AST | None = None
    found_by: tuple[Mark, ...] = ()
    """Lines that made this call mean this function, such as a replaced attribute."""
    depth: int = 0
    cache: dict[ast.AST, tuple[Alternative, ...]] = field(default_factory=dict)
    truths: dict[ast.AST, tuple[bool | None, list[Alternative]]] = field(default_factory=dict)
    children: dict[tuple[int, int, int], Frame] = field(default_factory=dict)

    @property
    def scope(self) -> ast.AST:
        """The node whose body the frame runs."""
        return self.function.node if self.function else self.module.tree

    def chain(self) -> list[Frame]:
        """The frames from the outermost caller down to this one."""
        frames = [self]
        while frames[-1].caller is not None:
            frames.append(frames[-1].caller)
        return frames[::-1]


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition under which an alternative holds."""

    test: ast.expr
    holds: bool
    frame: Frame


@dataclass(frozen=True)
class Unknown:
    """Not known; the text is kept for messages."""

    text: str = ""


@dataclass(frozen=True)
class KnownValue:
    """A literal."""

    value: Any


@dataclass(frozen=True)
class Option:
    """A setting a user can give, with its default where the text tells it."""

    name: str
    default: Any = None
    has_default: bool = False


@dataclass(frozen=True, eq=False)
class Namespace:
    """Parsed options: attributes are settings. `fields` belongs to a dataclass of settings."""

    module: ModuleInfo | None = None
    fields: ClassInfo | None = None
    path: tuple[str, ...] = ()
    """The keys that lead to this group of settings in configuration files."""


@dataclass(frozen=True, eq=False)
class Sequence:
    """A tuple or list literal, its elements not yet evaluated."""

    elements: tuple[ast.expr, ...]
    frame: Frame
    is_unordered: bool = False
    """Whether elements were added later, so that a position means nothing."""


@dataclass(frozen=True, eq=False)
class Mapping:
    """A dictionary with known keys; an open one may have others."""

    items: dict[str, Binding]
    is_open: bool = False
    others: tuple[Binding, ...] | None = None
    """What an open mapping holds under keys that are not known, where all of it can be read."""

    @property
    def everything(self) -> list[tuple[str, Binding]]:
        """Every value that can be read, with its key where that is known."""
        return [*self.items.items(), *(("an item", binding) for binding in self.others or ())]

    @property
    def is_read(self) -> bool:
        """Whether every value can be read, and there is one."""
        return bool(self.everything) and (not self.is_open or self.others is not None)


@dataclass(frozen=True, eq=False)
class Callable:
    """A function of the repository, with the object it is bound to and the frame it closes over."""

    function: FunctionInfo
    receiver: Alternative | None = None
    parent: Frame | None = None
    preset: tuple[tuple[str, Binding], ...] = ()
    """Keywords fixed beforehand by `functools.partial`."""


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the repository."""

    info: ClassInfo
    parent: Frame | None = None
    preset: tuple[tuple[str, Binding], ...] = ()
    """Keywords fixed beforehand by `functools.partial`."""


@dataclass(frozen=True, eq=False)
class Instance:
    """An object of a class of the repository, with the frame of its constructor."""

    info: ClassInfo
    made_at: ast.Call | None
    frame: Frame | None
    init: Frame | None


@dataclass(frozen=True, eq=False)
class Module:
    """A module of the repository."""

    info: ModuleInfo


@dataclass(frozen=True)
class External:
    """Something imported from outside the repository, by its dotted name."""

    name: str


@dataclass(frozen=True, eq=False)
class ExternalObject:
    """What a call of something external gave back."""

    name: str
    call: ast.Call
    frame: Frame


#: Readers of files of data; what is taken out of them by a name, a number or a loop is a recording.
_DATA_READERS = frozenset(
    {"pickle.load", "pickle.loads", "joblib.load", "torch.load", "h5py.File", "dill.load", "cloudpickle.load"}
)
_RECORDING = Unknown("something that was read from a file")


def recorded(value: Value) -> Unknown | None:
    """Part of what a file of data holds: not known, but no policy computes it while an environment is played."""
    is_read = isinstance(value, ExternalObject) and value.name in _DATA_READERS
    return _RECORDING if is_read or is_recorded(value) else None


def is_recorded(value: Value) -> bool:
    """Whether a value is part of a file of data, such as the settings that are stored with the weights."""
    return isinstance(value, Unknown) and value.text.startswith(_RECORDING.text)


@dataclass(frozen=True, eq=False)
class Environment:
    """An environment: the constructor call that made it, whatever wraps it."""

    name: str
    call: ast.Call
    frame: Frame
    info: ClassInfo | None = None


@dataclass(frozen=True, eq=False)
class Action:
    """An action chosen: by a draw from the policy, by its maximum, at random, or noisily."""

    rule: str
    node: ast.AST
    frame: Frame
    needs_distribution: bool = False


@dataclass(frozen=True, eq=False)
class Computed:
    """Computed from observations, weights and constants: the same every time."""

    node: ast.AST
    frame: Frame
    is_observed: bool = False
    """Whether an observation or a network went into it, so that it can be a policy's answer."""


@dataclass(frozen=True, eq=False)
class Noise:
    """Random numbers that do not come from the policy."""

    kind: str
    """uniform, normal, gumbel or other."""
    node: ast.AST
    frame: Frame
    is_scaled: bool = False
    """Whether the numbers are scaled by something computed, as the spread of a policy is."""


@dataclass(frozen=True, eq=False)
class SuperOf:
    """`super()` inside a method of a class."""

    info: ClassInfo
    receiver: Alternative | None


Value = (
    Unknown
    | KnownValue
    | Option
    | Namespace
    | Sequence
    | Mapping
    | Callable
    | Class
    | Instance
    | Module
    | External
    | ExternalObject
    | Environment
    | Action
    | Computed
    | Noise
    | SuperOf
)


@dataclass(frozen=True, eq=False)
class Alternative:
    """One thing an expression can stand for."""

    value: Value
    guards: tuple[Guard, ...] = ()
    marks: tuple[Mark, ...] = ()
    origin: str = ""
    """Where a constant came from: literal, argument, default, option or '' for other values."""

    def under(self, *guards: Guard) -> Alternative:
        """The same, under further conditions."""
        known = {(id(guard.test), id(guard.frame), guard.holds) for guard in self.guards}
        fresh = [guard for guard in guards if (id(guard.test), id(guard.frame), guard.holds) not in known]
        return replace(self, guards=(*fresh, *self.guards)) if fresh else self

    @property
    def is_contradictory(self) -> bool:
        """Whether two of its conditions exclude each other."""
        known = {(id(guard.test), id(guard.frame)): guard.holds for guard in self.guards}
        return any(known[id(guard.test), id(guard.frame)] != guard.holds for guard in self.guards)

    def noting(self, *marks: Mark) -> Alternative:
        """The same, with further lines of evidence in front."""
        fresh = tuple(mark for mark in marks if mark not in self.marks)
        return replace(self, marks=(*fresh, *self.marks)) if fresh else self

    def from_origin(self, origin: str) -> Alternative:
        """The same, with the origin of the constant stated again."""
        return replace(self, origin=origin)


def describe(node: ast.AST) -> str:
    """The text of an expression, shortened."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "..."
    return text if len(text) <= 60 else text[:57] + "..."


def identity(value: Value) -> object:
    """What makes two values the same: plain values by what they say, objects by themselves."""
    if isinstance(value, KnownValue):
        return ("constant", type(value.value).__name__, repr(value.value))
    if isinstance(value, Option):
        return ("option", value.name, repr(value.default), value.has_default)
    if isinstance(value, Unknown | External):
        return value
    if isinstance(value, Computed):
        return ("computed", value.is_observed)
    if isinstance(value, Action):
        return ("action", value.rule, id(value.node), id(value.frame))
    if isinstance(value, Environment):
        return ("environment", id(value.call), id(value.frame))
    if isinstance(value, Callable):
        return (
            "callable",
            id(value.function),
            id(value.receiver.value) if value.receiver else 0,
            id(value.parent),
        )
    return id(value)


def element(elements: tuple[ast.expr, ...], index: int) -> ast.expr | None:
    """Element `index` of a literal, or None where a starred one hides it."""
    stars = [position for position, item in enumerate(elements) if isinstance(item, ast.Starred)]
    if not -len(elements) <= index < len(elements):
        return None
    if stars and ((index >= 0 and index >= stars[0]) or (index < 0 and len(elements) + index <= stars[-1])):
        return None
    return elements[index]
