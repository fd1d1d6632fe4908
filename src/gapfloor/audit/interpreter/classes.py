"""Classes of the repository: bases, methods, and what kind of thing their objects are."""

from __future__ import annotations

import ast
import re
from itertools import repeat
from typing import Literal

from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.facts import pattern, words
from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, ModuleInfo, last_name, own_nodes

_ENVIRONMENT_BASE = re.compile(r"(env|environment|wrapper|vecenv|envwrapper|task)$", re.IGNORECASE)
DISTRIBUTION = pattern("distribution")
_OTHER_STEPPER = re.compile(r"agent|actor|polic|learner|tracker|accumulator|optim|sched", re.IGNORECASE)
_SPACES = words("spaces")
_TRANSITIONS = words("transitions")
Kind = Literal["environment", "network", "distribution", "set by name"]
_NETWORK = frozenset({"Module", "Model", "Layer", "Sequential", "RNNCell"})


def mro(info: ClassInfo) -> list[ClassInfo | str]:
    """The class and its bases, depth first; external ones by name."""
    if "mro" not in info.known:
        info.known["mro"] = [info]
        found: list[ClassInfo | str] = [info]
        for base in map(_class_of, info.node.bases, repeat(info.module)):
            found += [
                one for one in (mro(base) if isinstance(base, ClassInfo) else [base]) if one not in found
            ]
        info.known["mro"] = found
    kept: list[ClassInfo | str] = info.known["mro"]
    return kept


def _class_of(node: ast.expr, module: ModuleInfo) -> ClassInfo | str:
    """The class that a base expression names: of the repository, or the dotted name of an external one."""
    while isinstance(node, ast.Subscript):  # a generic base: Wrapper[Observation, Action]
        node = node.value
    for item in module.frame.evaluate(node):
        if isinstance(item.value, v.Class | v.External):
            return item.value.info if isinstance(item.value, v.Class) else item.value.name
    return last_name(node)


def own(info: ClassInfo) -> list[ClassInfo]:
    """The class and its bases in the repository."""
    return [item for item in mro(info) if isinstance(item, ClassInfo)]


def methods_of(info: ClassInfo) -> list[FunctionInfo]:
    """The methods of the class and of its bases in the repository."""
    return [method for item in own(info) for method in item.methods.values()]


def external_bases(info: ClassInfo) -> list[str]:
    """The names of bases outside the repository."""
    return [item for item in mro(info) if isinstance(item, str)]


def method(info: ClassInfo, name: str, *, after: ClassInfo | None = None) -> FunctionInfo | None:
    """The method `name` of the class or its bases in the repository (beyond `after`, for `super()`)."""
    found = own(info)
    found = found[found.index(after) + 1 :] if after in found else found if after is None else []
    return next((item.methods[name] for item in found if name in item.methods), None)


def is_a(info: ClassInfo, kind: Kind) -> bool:
    """Whether objects of the class are environments (or wrap them), networks or a library's distributions.

    Attributes of an object that is `set by name` come from names at run time, so that a setting may be one of them.
    """
    if kind not in info.known:
        info.known[kind] = False
        info.known[kind] = _decide(info, kind)
    return bool(info.known[kind])


def _decide(info: ClassInfo, kind: Kind) -> bool:
    bases = [base.rsplit(".", 1)[-1] for base in external_bases(info)]
    inner = own(info)
    if kind == "network":
        return any(base in _NETWORK for base in bases)
    if kind == "distribution":
        return any(DISTRIBUTION.search(base) for base in bases)
    if kind == "set by name":
        nodes = [node for method in methods_of(info) for node in own_nodes(method.node)]
        return any(
            (isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "__setattr__"))
            or (isinstance(node, ast.Attribute) and node.attr == "__dict__")
            for node in nodes
        )
    if any(base in _NETWORK for base in bases):
        return False
    if any(_ENVIRONMENT_BASE.search(base) for base in bases):
        return True
    names = {name for item in inner for name in item.methods}
    is_named = any(_ENVIRONMENT_BASE.search(item.name) for item in inner)
    # An environment may be reset to a level only; other objects have resets of their inner (of noise, of weights).
    resets = {name for name in names if name == "reset" or (is_named and name.startswith("reset_"))}
    steps = [item.methods[name] for item in inner for name in ("step", "step_wait") if name in item.methods]
    if is_named or not resets or any(_OTHER_STEPPER.search(item.name) for item in inner):
        return is_named and bool(resets and steps)
    # Agents and trackers have `reset` and `step` too: an environment has spaces, or its step gives a transition.
    return any(map(_gives_transition, steps)) or (bool(steps) and _has_spaces(inner))


def _gives_transition(step: FunctionInfo) -> bool:
    """Whether a step gives back what an environment gives: observation, reward and end, or a library's time step."""
    given = [node.value for node in own_nodes(step.node) if isinstance(node, ast.Return)]
    return any(
        (isinstance(one, ast.Tuple) and len(one.elts) >= 3) or (one and last_name(one) in _TRANSITIONS)
        for one in given
    )


def _has_spaces(own: list[ClassInfo]) -> bool:
    """Whether a class says which actions or observations there are."""
    return any(
        getattr(node, "attr", getattr(node, "name", getattr(node, "id", ""))) in _SPACES
        for item in own
        for scope in (item.node, *(method.node for method in item.methods.values()))
        for node in own_nodes(scope)
    )
