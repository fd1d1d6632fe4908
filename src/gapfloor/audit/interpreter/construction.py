"""The objects that calling a class, a maker of environments or Hydra's `instantiate` makes."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter import calls
from gapfloor.audit.interpreter.binding import argument, bind
from gapfloor.audit.interpreter.facts import EnvironmentFact
from gapfloor.audit.interpreter.options import is_settings_class
from gapfloor.audit.interpreter.values import (
    Alternative,
    Callable,
    Class,
    Environment,
    Frame,
    Instance,
    Mark,
    Namespace,
    Sequence,
    Unknown,
    describe,
)
from gapfloor.audit.reading.index import FunctionInfo

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator


def construct(evaluator: Evaluator, value: Class, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """The object that calling a class makes; an environment stays one through its wrappers."""
    info = value.info
    made = Instance(info, call, frame, None)
    init = evaluator.objects.method(info, "__init__")
    if value.preset and (evaluator.objects.is_environment(info) or is_settings_class(info.node)):
        return (Alternative(Unknown(f"{info.name} with arguments that were fixed before")),)
    if evaluator.objects.is_environment(info):
        inner = environments_among(evaluator, call, frame)
        if inner:
            return inner
        if _wraps(init):
            return (Alternative(Unknown(f"{info.name}(env)")),)
        return (Alternative(Environment(info.name, call, frame, info)),)
    if init is not None and calls.may_enter(init, frame):
        alternative = Alternative(made)
        inner_frame = bind(evaluator, init, call, frame, alternative, value.parent, value.preset)
        made = replace(made, init=inner_frame)
        inner_frame.receiver = Alternative(made)
    return (Alternative(made),)


def _wraps(init: FunctionInfo | None) -> bool:
    """Whether a constructor takes an environment, so that the class is a wrapper and not an environment itself."""
    if init is None:
        return False
    arguments = init.node.args
    return any(
        re.fullmatch(r"v?envs?|vec_env|environment", arg.arg)
        for arg in [*arguments.args, *arguments.kwonlyargs]
    )


def environments_among(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """The environments that a call's first environment argument can be, also inside a list of makers."""
    for given in [*call.args, *(keyword.value for keyword in call.keywords)]:
        found = environments_of(evaluator, given, frame)
        if found:
            return found
    return ()


def environments_of(evaluator: Evaluator, given: ast.expr, frame: Frame) -> tuple[Alternative, ...]:
    """The environments that an expression can be, or that a function it names can make."""
    found: list[Alternative] = []
    for item in evaluator.evaluate(given, frame):
        found.extend(_as_environments(evaluator, item, frame))
    return tuple(found)


def _as_environments(evaluator: Evaluator, item: Alternative, frame: Frame) -> list[Alternative]:
    value = item.value
    found: list[Alternative] = []
    if isinstance(value, Environment):
        return [item]
    if isinstance(value, Sequence):
        for element in value.elements[:2]:
            for inner in evaluator.evaluate(element, value.frame):
                found.extend(_as_environments(evaluator, inner, frame))
    elif isinstance(value, Callable) and calls.may_enter(value.function, frame):
        inner_frame = evaluator.bound_frame(
            value.function, None, frame, value.receiver, value.parent, value.preset
        )
        for inner in evaluator.returns(inner_frame):
            if isinstance(inner.value, Environment | Callable):
                found.extend(_as_environments(evaluator, inner, inner_frame))
    return [one.under(*item.guards) for one in found]


def made_by_argument(
    evaluator: Evaluator, fact: EnvironmentFact, call: ast.Call, frame: Frame
) -> tuple[Alternative, ...]:
    """The environments that a function of the repository makes, where a constructor is given one."""
    given = argument(call, fact.factory, fact.factory_position) if fact.factory is not None else None
    if given is None:
        return ()
    found: list[Alternative] = []
    for item in evaluator.evaluate(given, frame):
        if isinstance(item.value, Callable | Class):
            made = calls.call_value(evaluator, item, call_like(call), frame)
            kept = [one for one in made if isinstance(one.value, Environment)]
            found.extend(kept or [Alternative(Unknown(describe(call)))])
    return tuple(found)


def instantiate(evaluator: Evaluator, call: ast.Call, frame: Frame) -> tuple[Alternative, ...]:
    """Hydra's `instantiate(cfg.group)`: the class that the group's `_target_` names, made with the group's settings."""
    found: list[Alternative] = []
    for item in evaluator.evaluate(call.args[0], frame):
        space = item.value
        targets = (
            evaluator.options.in_files((*space.path, "_target_"), frame.chain()[0].module)
            if isinstance(space, Namespace) and space.path
            else []
        )
        if not targets:
            return (Alternative(Unknown(f"the class that {describe(call.args[0])} names")),)
        made = call_like(call)
        made.args = call.args[1:]
        made.keywords = [*call.keywords, *made.keywords]
        for target in {str(one.value): one for one in targets}.values():
            mark = Mark(target.file, target.line, f"'_target_' is {target.value}")
            for value in evaluator.names.dotted(str(target.value), frame.module):
                if isinstance(value.value, Class | Callable):
                    found.extend(one.noting(mark) for one in calls.call_value(evaluator, value, made, frame))
                else:
                    found.append(Alternative(Unknown(f"{target.value} ({target.file}:{target.line})")))
    return tuple(found)


def call_like(call: ast.Call) -> ast.Call:
    """A call with arguments that cannot be read at the place of another, for what a dependency calls itself."""
    made = ast.Call(
        func=call.func, args=[], keywords=[ast.keyword(arg=None, value=ast.Name("?", ast.Load()))]
    )
    ast.copy_location(made, call)
    ast.copy_location(made.keywords[0].value, call)
    return made
