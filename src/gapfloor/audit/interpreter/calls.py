"""What a call gives back: a function or class of the repository, or what the other files of this folder know."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter import construction, library_calls, methods
from gapfloor.audit.interpreter.facts import find_actor
from gapfloor.audit.interpreter.options import is_missing, literal
from gapfloor.audit.interpreter.randomness import is_deterministic_function
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Callable,
    Class,
    Computed,
    Environment,
    External,
    ExternalObject,
    Frame,
    Instance,
    Mark,
    Noise,
    Option,
    Sequence,
    SuperOf,
    Unknown,
    describe,
)
from gapfloor.audit.reading.index import FunctionInfo

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

DEEPEST_CALL = 16


def evaluate_call(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """The alternatives of a call."""
    function = call.func
    if isinstance(function, ast.Name) and function.id == "super":
        return _super(frame)
    if isinstance(function, ast.Name) and function.id == "getattr" and len(call.args) >= 2:
        name = literal(call.args[1])
        if isinstance(name, str):
            base = evaluator.evaluate(call.args[0], frame)
            named = [one for item in base for one in evaluator.objects.attribute(item, name, call, frame)]
            return tuple(_or_default(one, name, call, frame) for one in named)
    if isinstance(function, ast.Attribute):
        return methods.method_call(evaluator, call, function, frame)
    found: list[Alternative] = []
    for target in evaluator.evaluate(function, frame):
        found.extend(item.under(*target.guards) for item in call_value(evaluator, target, call, frame))
    return tuple(found)


def _or_default(item: Alternative, name: str, call: ast.Call, frame: Frame) -> Alternative:
    """`getattr(settings, name, default)`: the default, where no setting of that name is known."""
    default = literal(call.args[2]) if len(call.args) > 2 else None
    is_setting = isinstance(item.value, Unknown) and item.value.text == f"args.{name}"
    if len(call.args) < 3 or not is_setting or is_missing(default):
        return item
    mark = Mark(frame.module.path, call.lineno, f"setting '{name}', default {default!r}")
    return Alternative(Option(name, default, has_default=True), item.guards, (mark,), "option")


def call_value(
    evaluator: Evaluator, target: Alternative, call: ast.Call, frame: Frame
) -> tuple[Alternative, ...]:
    """What calling one alternative gives back."""
    value = target.value
    if isinstance(value, Callable):
        return invoke(evaluator, value, call, frame)
    if isinstance(value, Class):
        return construction.construct(evaluator, value, call, frame)
    if isinstance(value, External):
        return library_calls.external_call(evaluator, value.name, call, frame)
    if isinstance(value, Instance):
        for name in ("__call__", "forward"):
            method = evaluator.objects.method(value.info, name)
            if method is not None:
                return invoke(evaluator, Callable(method, target), call, frame)
    if isinstance(value, Action | Environment):
        return (target,)
    if isinstance(value, ExternalObject):
        fact = find_actor(value.name, "__call__")
        if fact is not None:
            return methods.by_fact(evaluator, fact, value, call, frame)
        if is_deterministic_function(value.name):
            return _layer_output(evaluator, call, frame)
    return library_calls.passes_through(evaluator, call, frame) or (Alternative(Unknown(describe(call))),)


def _layer_output(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """What a layer of a network gives: computed from its inputs, whatever observation or state these are."""
    found = library_calls.computed(evaluator, call, frame)
    carried = tuple(item for item in found if isinstance(item.value, Action | Noise))
    return carried or (Alternative(Computed(call, frame, is_observed=True)),)


def invoke(evaluator: Evaluator, value: Callable, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """What a function of the repository gives back when called here."""
    if not may_enter(value.function, frame):
        return (Alternative(Unknown(describe(call))),)
    inner = evaluator.bound_frame(value.function, call, frame, value.receiver, value.parent, value.preset)
    mark = Mark(frame.module.path, call.lineno, f"{describe(call.func)}(...) is called")
    return tuple(
        item.noting(mark) if isinstance(item.value, Action | Sequence) else item
        for item in evaluator.returns(inner)
    )


def may_enter(function: FunctionInfo, frame: Frame) -> bool:
    """Whether to follow a call: not too deep, and not round in circles."""
    if frame.depth >= DEEPEST_CALL:
        return False
    return sum(one.function is function for one in frame.chain()) < 2


def _super(frame: Frame) -> tuple[Alternative, ...]:
    current: Frame | None = frame
    while current is not None:
        if current.function is not None and current.function.owner is not None:
            return (Alternative(SuperOf(current.function.owner, current.receiver)),)
        current = current.parent
    return (Alternative(Unknown("super()")),)
