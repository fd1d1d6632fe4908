"""Dictionaries, lists, subscripts and comprehensions: what an element of them can be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.options import is_missing, literal
from gapfloor.audit.interpreter.primitives import RANKINGS
from gapfloor.audit.interpreter.randomness import is_deterministic_function
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Binding,
    Callable,
    Computed,
    Environment,
    ExternalObject,
    Frame,
    Instance,
    KnownValue,
    Mapping,
    Namespace,
    Noise,
    Option,
    Sequence,
    Unknown,
    Value,
    describe,
    element,
    recorded,
)

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator


def dictionary(evaluator: Evaluator, node: ast.Dict, frame: Frame) -> tuple[Alternative, ...]:
    """A dictionary literal as a mapping; open where a key or a `**mapping` cannot be read."""
    items: dict[str, Binding] = {}
    is_open = False
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str | int):
            items[str(key.value)] = Binding(value, frame)
        elif key is None:  # **mapping
            inner = evaluator.evaluate(value, frame)
            if len(inner) == 1 and isinstance(inner[0].value, Mapping):
                items.update(inner[0].value.items)
                is_open = is_open or inner[0].value.is_open
            else:
                items, is_open = {}, True
        else:
            name = evaluator.evaluate(key, frame)
            text = plain_text(name[0].value) if len(name) == 1 else None
            if text is None:
                is_open = True
            else:
                items[text] = Binding(value, frame)
    return (Alternative(Mapping(items, is_open=is_open)),)


def subscript(evaluator: Evaluator, node: ast.Subscript, frame: Frame) -> tuple[Alternative, ...]:
    """What `base[key]` can be."""
    index = literal(node.slice)
    base = evaluator.evaluate(node.value, frame)
    if isinstance(index, int) and not is_missing(index):
        return evaluator.project(base, index)
    found: list[Alternative] = []
    for item in base:
        if isinstance(item.value, Mapping) and isinstance(index, str) and index in item.value.items:
            found.extend(evaluator.evaluate_binding(item.value.items[index], index))
        elif isinstance(item.value, Action | Environment | Computed | Noise):
            found.append(item)
        elif isinstance(item.value, Mapping):
            found.extend(_item_of(evaluator, item.value, node, frame))
        elif isinstance(item.value, Sequence):
            found.extend(one.under(*item.guards) for one in evaluator.names.elements((item,)))
        elif isinstance(item.value, ExternalObject) and is_deterministic_function(item.value.name):
            found.append(Alternative(Computed(node, frame), item.guards, item.marks))
        elif isinstance(index, str) and (part := recorded(item.value)) is not None:
            found.append(Alternative(part, item.guards, item.marks))
        elif isinstance(index, str) and isinstance(item.value, Unknown | Namespace):
            found.extend(evaluator.objects.attribute(item, index, node, frame))
        else:
            found.append(Alternative(Unknown(describe(node)), item.guards))
    return tuple(found)


def _item_of(evaluator: Evaluator, value: Mapping, node: ast.Subscript, frame: Frame) -> list[Alternative]:
    """The item under a key that is not written in place: the key's default where a setting has one, else any."""
    keys = evaluator.evaluate(node.slice, frame)
    names = [plain_text(item.value) for item in keys]
    found: list[Alternative] = []
    if names and all(name is not None and name in value.items for name in names):
        for key, name in zip(keys, names, strict=True):
            assert name is not None
            for one in evaluator.evaluate_binding(value.items[name], name):
                found.append(one.under(*key.guards).noting(*key.marks))
        return found
    for name, binding in value.everything:
        found.extend(evaluator.evaluate_binding(binding, name))
    if not value.is_read:
        found.append(Alternative(Unknown(describe(node))))
    return found


def dict_comprehension(evaluator: Evaluator, node: ast.DictComp, frame: Frame) -> tuple[Alternative, ...]:
    """A mapping whose values are alike; the keys are not known."""
    inner = evaluator.evaluate(node.value, frame)
    if any(isinstance(item.value, Action | Environment | Computed) for item in inner):
        return inner
    return (Alternative(Mapping({}, is_open=True)),)


def comprehension(
    evaluator: Evaluator, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame
) -> tuple[Alternative, ...]:
    """What the elements of a comprehension can be."""
    inner = evaluator.evaluate(node.elt, frame)
    kinds = Action | Environment | Callable | Instance | Computed | Noise
    if any(isinstance(item.value, kinds) for item in inner):
        return inner
    return (Alternative(Unknown(describe(node))),)


def project(
    evaluator: Evaluator, alternatives: tuple[Alternative, ...], index: int
) -> tuple[Alternative, ...]:
    """Element `index` of what was evaluated."""
    found: list[Alternative] = []
    for item in alternatives:
        value = item.value
        if isinstance(value, Sequence):
            chosen = None if value.is_unordered else element(value.elements, index)
            if value.is_unordered:
                found.extend(one.under(*item.guards) for one in evaluator.names.elements((item,)))
            elif chosen is None:
                found.append(Alternative(Unknown(), item.guards))
            else:
                inner = evaluator.evaluate(chosen, value.frame)
                found.extend(one.under(*item.guards).noting(*item.marks) for one in inner)
        elif isinstance(value, Action | Environment | Computed | Noise):
            found.append(item)
        elif isinstance(value, ExternalObject) and value.name.rsplit(".", 1)[-1] in RANKINGS:
            if index in (1, -1):
                made: Value = Action("argmax", value.call, value.frame)
            else:
                made = Computed(value.call, value.frame)
            found.append(Alternative(made, item.guards, item.marks))
        elif isinstance(value, Mapping):
            for name, binding in value.everything:
                found.extend(one.under(*item.guards) for one in evaluator.evaluate_binding(binding, name))
            if not value.is_read:
                found.append(Alternative(Unknown("an item of a mapping"), item.guards))
        elif (part := recorded(value)) is not None:
            found.append(Alternative(part, item.guards, item.marks))
        else:
            text = value.text if isinstance(value, Unknown) else "an element of something unknown"
            found.append(Alternative(Unknown(text), item.guards))
    return tuple(found)


def plain_text(value: Value) -> str | None:
    """The text of a known string or number, settings at their defaults; None for anything else."""
    if isinstance(value, KnownValue) and isinstance(value.value, str | int | float):
        return str(value.value)
    if isinstance(value, Option) and value.has_default and isinstance(value.default, str | int | float):
        return str(value.default)
    return None
