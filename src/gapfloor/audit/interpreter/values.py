"""What an expression can stand for, as far as reading alone can tell.

An expression has alternatives, each with the conditions under which it holds, the lines that led to it, where a
constant came from, and the assumptions (`doubts`) without which it would not be known. An answer without doubts is
proved.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, ModuleInfo

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator


MAY_BE_GIVEN = "may be given by an argument list that cannot be read"


@dataclass(frozen=True)
class Mark:
    """A line that matters: file, number and what it shows."""

    file: str
    line: int
    what: str


@dataclass(eq=False)
class Binding:
    """What a parameter is bound to: an expression in its frame; nothing where the call cannot be read."""

    expression: ast.expr | None
    frame: Frame | None
    is_default: bool = False
    is_unsure: bool = False
    """Whether an argument list that cannot be read may override the default."""

    def evaluate(self, name: str) -> tuple[Alternative, ...]:
        """The alternatives of the expression, with the way a constant came to the parameter or key `name`."""
        if self.expression is None or self.frame is None:
            return (Alternative(Unknown(name)),)
        shown = describe(self.expression)
        found = []
        for item in self.frame.evaluate(self.expression):
            origin, words = item.origin, f"passed on as {name}"
            if self.is_default:
                origin = "default" if isinstance(item.value, KnownValue) else origin
                words = f"default argument {name}={shown}"
            elif origin == "literal":
                origin, words = "argument", f"{name}={shown} passed at the call"
            mark = Mark(self.frame.module.path, self.expression.lineno, words)
            unsure = [f"{name}={shown} {MAY_BE_GIVEN}"] if self.is_unsure else []
            found.append(replace(item.noting(mark), origin=origin).doubting(*unsure))
        return tuple(found)


@dataclass(eq=False, repr=False)
class Frame:
    """One call of a function (or a module's body) with its parameters bound; it knows who called it, and where."""

    evaluator: Evaluator
    module: ModuleInfo
    function: FunctionInfo | None = None
    bindings: dict[str, Binding] = field(default_factory=dict)
    receiver: Alternative | None = None
    parent: Frame | None = None
    """The frame of the enclosing function, for a function inside another."""
    caller: Frame | None = None
    call: ast.AST | None = None
    doubts: frozenset[str] = frozenset()
    """What had to be assumed to say that this function is called here."""
    found_by: tuple[Mark, ...] = ()
    """Lines that made a call mean this function, such as a replaced attribute."""
    is_handed: bool = False
    """Whether the function was handed to something that calls it: a process, `scan`, `map`."""
    depth: int = 0
    cache: dict[ast.AST, tuple[Alternative, ...]] = field(default_factory=dict)
    truths: dict[ast.AST, tuple[bool | None, list[Alternative]]] = field(default_factory=dict)
    """Conditions that were decided before."""
    children: dict[tuple[int, int, int, int], Frame] = field(default_factory=dict)

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

    @property
    def script(self) -> ModuleInfo:
        """The module of the outermost caller."""
        return self.chain()[0].module

    def evaluate(self, node: ast.AST | None) -> tuple[Alternative, ...]:
        """What an expression can stand for here."""
        return self.evaluator.evaluate(node, self)

    def truth(self, test: ast.AST) -> tuple[bool | None, list[Alternative]]:
        """Whether a condition holds here, and the constants that say so."""
        return self.evaluator.truth(test, self)

    def enter(
        self,
        function: FunctionInfo,
        call: ast.Call | None,
        receiver: Alternative | None = None,
        parent: Frame | None = None,
        preset: tuple[tuple[str, Binding], ...] = (),
    ) -> Frame:
        """The frame of calling `function` at `call` from here, with its parameters bound."""
        key = (id(call), id(function), id(receiver.value) if receiver else 0, id(preset) if preset else 0)
        if key not in self.children:
            self.children[key] = self.evaluator.bind(function, call, self, receiver, parent, preset)
        return self.children[key]

    def returns(self) -> tuple[Alternative, ...]:
        """What the call can give back."""
        return self.evaluator.returns(self)


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition under which an alternative holds."""

    test: ast.expr
    holds: bool
    frame: Frame

    @property
    def is_unlikely(self) -> bool:
        """Whether it does not hold, settings at their defaults."""
        return self.frame.truth(self.test)[0] is (not self.holds)

    @property
    def is_ruled_out(self) -> bool:
        """Whether it cannot hold, by constants that no user can set."""
        used = self.frame.truth(self.test)[1]
        return self.is_unlikely and not self.doubts and all(item.origin != "option" for item in used)

    @property
    def doubts(self) -> set[str]:
        """The defaults in it that an argument list may override."""
        used = self.frame.truth(self.test)[1]
        return {doubt for item in used for doubt in item.doubts if doubt.endswith(MAY_BE_GIVEN)}


@dataclass(frozen=True)
class Unknown:
    """Not known. A neutral unknown is data (a bound, a setting, something from a file): it chooses no action."""

    text: str = ""
    is_neutral: bool = False


@dataclass(frozen=True)
class KnownValue:
    """A literal, or a setting at its default (the origin says which)."""

    value: Any


@dataclass(frozen=True, eq=False)
class Namespace:
    """Parsed options: attributes are settings. `fields` belongs to a dataclass of settings."""

    module: ModuleInfo | None = None
    fields: ClassInfo | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Sequence:
    """A tuple or list literal, its elements not yet evaluated."""

    elements: tuple[ast.expr, ...]
    frame: Frame
    is_unordered: bool = False


@dataclass(frozen=True, eq=False)
class Mapping:
    """A dictionary with known keys; an open one may have others."""

    items: dict[str, Binding]
    is_open: bool = False


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


@dataclass(frozen=True, eq=False)
class Instance:
    """An object of a class of the repository, with the frame of its constructor."""

    info: ClassInfo
    made_at: ast.AST | None = None
    init: Frame | None = None


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


@dataclass(frozen=True, eq=False)
class Environment:
    """An environment: the constructor call that made it, whatever wraps it."""

    name: str
    call: ast.Call
    frame: Frame
    info: ClassInfo | None = None
    wrappers: tuple[ClassInfo, ...] = ()
    """Wrapper classes of the repository around it, which may replace the action."""


@dataclass(frozen=True, eq=False)
class Action:
    """An action chosen: by a draw from the policy, by its maximum, at random, or noisily."""

    rule: str
    node: ast.AST
    frame: Frame
    is_from_policy: bool = False
    """Whether a distribution was used, as policy-gradient agents have one."""


@dataclass(frozen=True, eq=False)
class Computed:
    """Computed from observations, weights and constants: the same every time."""

    node: ast.AST
    frame: Frame
    is_observed: bool = False
    """Whether an observation or a network went into it, so that it can be a policy's answer."""


@dataclass(frozen=True, eq=False)
class Noise:
    """Random numbers that do not come from the policy: uniform, normal, gumbel, exponential, mask or other."""

    kind: str
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
    Unknown | KnownValue | Namespace | Sequence | Mapping | Callable | Class | Instance | Module | External
    | ExternalObject | Environment | Action | Computed | Noise | SuperOf
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Alternative:
    """One thing an expression can stand for."""

    value: Value
    guards: tuple[Guard, ...] = ()
    marks: tuple[Mark, ...] = ()
    origin: str = ""
    """Where a constant came from: literal, argument, default, option or '' for other values."""
    doubts: frozenset[str] = frozenset()

    def under(self, *guards: Guard) -> Alternative:
        """The same, under further conditions."""
        known = {(id(guard.test), id(guard.frame), guard.holds) for guard in self.guards}
        fresh = [guard for guard in guards if (id(guard.test), id(guard.frame), guard.holds) not in known]
        return replace(self, guards=(*fresh, *self.guards)) if fresh else self

    @property
    def is_unlikely(self) -> bool:
        """Whether a condition of it does not hold, settings at their defaults."""
        return any(guard.is_unlikely for guard in self.guards)

    def noting(self, *marks: Mark) -> Alternative:
        """The same, with further lines of evidence in front."""
        fresh = tuple(mark for mark in marks if mark not in self.marks)
        return replace(self, marks=(*fresh, *self.marks)) if fresh else self

    def doubting(self, *doubts: str) -> Alternative:
        """The same, with further assumptions."""
        return replace(self, doubts=self.doubts | set(doubts)) if set(doubts) - self.doubts else self

    def after(self, other: Alternative) -> Alternative:
        """The same, as something that was found through another alternative: its conditions and doubts hold too."""
        return self.under(*other.guards).doubting(*other.doubts)


def describe(node: ast.AST | None) -> str:
    """The text of an expression, shortened."""
    if node is None:
        return "?"
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "..."
    return text if len(text) <= 60 else text[:57] + "..."


def identity(value: Value) -> object:
    """What makes two values the same: plain values by what they say, objects by themselves."""
    if isinstance(value, KnownValue):
        return ("constant", type(value.value).__name__, repr(value.value))
    if isinstance(value, Unknown | External):
        return value
    if isinstance(value, Computed):
        return ("computed", value.is_observed)
    if isinstance(value, Action):
        return ("action", value.rule, id(value.node), id(value.frame))
    if isinstance(value, Environment):
        return ("environment", id(value.call), id(value.frame))
    if isinstance(value, Callable):
        return ("callable", id(value.function), id(value.receiver and value.receiver.value), id(value.parent))
    return id(value)
