"""Operators and containers: arithmetic on numbers, actions, noise and masks; lists, dictionaries and their items."""

from __future__ import annotations

import ast
import operator
from dataclasses import replace
from typing import TypeGuard

from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.facts import is_deterministic_function
from gapfloor.audit.interpreter.options import MISSING, literal
from gapfloor.audit.interpreter.reaching_definitions import branch_path, guards_of, stores_in
from gapfloor.audit.interpreter.values import Alternative, Frame, describe
from gapfloor.audit.reading.index import last_name, own_nodes, place_of

Alternatives = tuple[Alternative, ...]
_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv,
}  # fmt: skip
RANKINGS = frozenset({"max", "topk", "sort", "top_k"})
_READERS = frozenset({"load", "loads", "loadtxt", "fromfile", "open", "memmap", "read", "File"})


#: Part of a file of data: not known, but no policy computes it while an environment is played.
RECORDED = v.Unknown("something that was read from a file", is_neutral=True)


def is_reader(value: v.Value) -> bool:
    """Whether a value is what a reader of files gave back."""
    return isinstance(value, v.ExternalObject) and value.name.rsplit(".", 1)[-1] in _READERS


def is_ranking(value: v.Value) -> TypeGuard[v.ExternalObject]:
    """Whether a value is what `max`, `topk` or `sort` of a library gave back."""
    return isinstance(value, v.ExternalObject) and value.name.rsplit(".", 1)[-1] in RANKINGS


def part_of_ranking(value: v.ExternalObject, *, is_place: bool) -> v.Value:
    """Where the largest number is, which is a choice, or the number itself."""
    return v.Action("argmax", value.call, value.frame) if is_place else v.Computed(value.call, value.frame)


def combine(operands: list[Alternatives], node: ast.AST, frame: Frame) -> Alternatives:
    """What an operation on several operands can give: each choice of action, each unknown, or a computed value."""
    chosen: list[list[Alternative]] = []
    noise: list[Alternative] = []
    found: list[Alternative] = []
    plain: list[Alternative] = []
    doubts: set[str] = set()
    for operand in operands:
        actions = [item for item in operand if isinstance(item.value, v.Action)]
        chosen += [actions] if actions else []
        for item in operand:
            if isinstance(item.value, v.Noise):
                noise.append(item)
            elif is_plain(item):
                plain.append(item)
            elif not isinstance(item.value, v.Action):
                found.append(replace(item, value=innermost(item.value, node), origin=""))
        doubts |= {doubt for item in operand for doubt in item.doubts}
    settled = [item for item in plain if isinstance(item.value, v.Computed) and item.value.is_observed]
    if noise:
        found.extend(_noisy(chosen, noise, plain, node, frame))
    elif len({item.value.rule for group in chosen for item in group}) > 1 and len(chosen) > 1:  # type: ignore[union-attr]
        marks = tuple(dict.fromkeys(mark for group in chosen for item in group for mark in item.marks))
        found.append(Alternative(v.Action("noisy", node, frame), marks=marks))
    elif chosen:
        found.extend(item for group in chosen for item in group)
        for operand in operands:  # what may be an action or something computed stays both
            if any(isinstance(item.value, v.Action) for item in operand):
                found.extend(
                    replace(item, value=v.Computed(node, frame, True))
                    for item in operand
                    if isinstance(item.value, v.Computed) and item.value.is_observed
                )
    elif len(operands) == 1 and not found:
        found.extend(
            replace(item, value=v.Computed(node, frame, item in settled), origin="") for item in plain
        )
    elif settled or not found:
        found.append(Alternative(v.Computed(node, frame, bool(settled))))
    return tuple(item.doubting(*doubts) for item in found)


def innermost(value: v.Value, node: ast.AST) -> v.Unknown:
    """The cause of not knowing: the innermost unknown, not the expression that hides it."""
    if isinstance(value, v.Unknown):
        return value
    return v.Unknown(value.name if isinstance(value, v.External | v.ExternalObject) else describe(node))


def is_plain(item: Alternative) -> bool:
    """Whether a value is known to carry no choice of the policy."""
    value = item.value
    if isinstance(value, v.KnownValue | v.Computed | v.Mapping | v.Sequence | v.Instance | v.Namespace):
        return True
    if isinstance(value, v.Unknown):
        return value.is_neutral
    if isinstance(value, v.ExternalObject | v.External):
        return is_deterministic_function(value.name) and value.name.rsplit(".", 1)[-1] not in _READERS
    return False


def _noisy(
    chosen: list[list[Alternative]],
    noise: list[Alternative],
    plain: list[Alternative],
    node: ast.AST,
    frame: Frame,
) -> list[Alternative]:
    kept = noise[0].value
    assert isinstance(kept, v.Noise)
    guards = noise[0].guards
    if not chosen and not any(isinstance(item.value, v.Computed) for item in plain):
        return [Alternative(v.Noise(kept.kind, node, frame, kept.is_scaled), guards)]
    if not chosen and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        # Noise times something that a network gave: the spread of a policy.
        return [Alternative(v.Noise(kept.kind, node, frame, is_scaled=True), guards)]
    kinds = {item.value.kind for item in noise if isinstance(item.value, v.Noise)}
    is_scaled = any(isinstance(item.value, v.Noise) and item.value.is_scaled for item in noise)
    if not chosen and kinds == {"gumbel"}:
        return [Alternative(v.Noise("gumbel", node, frame, is_scaled=True), guards)]
    marks = tuple(dict.fromkeys(mark for group in chosen for item in group for mark in item.marks))
    rules = {item.value.rule for group in chosen for item in group if isinstance(item.value, v.Action)}
    # A draw with noise on top is still a draw.
    is_draw = rules == {"sampled"} or (kinds == {"normal"} and is_scaled and not chosen)
    return [Alternative(v.Action("sampled" if is_draw else "noisy", node, frame, is_draw), guards, marks)]


def arithmetic(node: ast.BinOp, frame: Frame) -> Alternatives:
    """What a binary operation gives: a number, an action, noise, or something computed."""
    left, right = frame.evaluate(node.left), frame.evaluate(node.right)
    folded = _folded(node, left, right)
    if folded is not None:
        return (folded,)
    if isinstance(node.op, ast.Mult):
        for mask, other in ((left, right), (right, left)):
            value = mask[0].value if len(mask) == 1 else None
            if isinstance(value, v.KnownValue) and value.value in (0, 1) and not isinstance(value.value, str):
                return other if value.value else (replace(mask[0], value=v.KnownValue(0)),)
    if isinstance(node.op, ast.Add) and all(isinstance(item.value, v.Sequence) for item in (*left, *right)):
        return (*left, *right)  # lists that are joined
    return combine([_opened(left), _opened(right)], node, frame)


def _opened(operand: Alternatives) -> Alternatives:
    """An array that was made of a list is as good as its elements."""
    parts = (elements((item,)) if isinstance(item.value, v.Sequence) else (item,) for item in operand)
    return tuple(one for part in parts for one in part)


def _folded(node: ast.BinOp, left: Alternatives, right: Alternatives) -> Alternative | None:
    """The result of arithmetic on two known numbers, or `1 - mask`, or None."""
    if len(left) != 1 or len(right) != 1:
        return None
    one, other = left[0].value, right[0].value
    function = _OPERATORS.get(type(node.op))
    if not isinstance(one, v.KnownValue) or not isinstance(other, v.KnownValue) or function is None:
        return None
    if not all(isinstance(item.value, int | float) and abs(item.value) < 1e12 for item in (one, other)):
        return None
    try:
        result = function(one.value, other.value)
    except (ZeroDivisionError, OverflowError):
        return None
    origins = [item.origin for item in (*left, *right)]
    origin = next((name for name in ("option", "default", "argument") if name in origins), "literal")
    marks = tuple(dict.fromkeys((*left[0].marks, *right[0].marks)))
    guards, doubts = (*left[0].guards, *right[0].guards), left[0].doubts | right[0].doubts
    return Alternative(v.KnownValue(result), guards, marks, origin, doubts)


def truth_value(node: ast.expr, frame: Frame) -> Alternatives:
    """The value of a comparison, a negation, `and` or `or`."""
    if isinstance(node, ast.BoolOp):
        known, _ = frame.truth(node)
        if known is not None and isinstance(node.op, ast.And):
            return (Alternative(v.KnownValue(known)),)
        return tuple(item for value in node.values for item in frame.evaluate(value))
    number = literal(node)
    if number is not MISSING:
        return (Alternative(v.KnownValue(number), origin="literal"),)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        found = frame.evaluate(node.operand)
        return combine([found], node, frame)
    known, used = frame.truth(node)
    if known is None:
        if any(isinstance(item.value, v.Noise) for item in used):
            return (Alternative(v.Noise("other", node, frame)),)
        return combine([tuple(used)], node, frame) if used else (Alternative(v.Unknown(describe(node))),)
    origins = [item.origin for item in used if item.origin]
    marks = tuple(dict.fromkeys(mark for item in used for mark in item.marks))
    doubts = frozenset(doubt for item in used for doubt in item.doubts)
    return (Alternative(v.KnownValue(known), (), marks, origins[0] if origins else "literal", doubts),)


# Containers.


def dictionary(node: ast.Dict, frame: Frame) -> Alternatives:
    """A dictionary literal; what is spread into it is read where it is a mapping."""
    items: dict[str, v.Binding] = {}
    is_open = False
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            spread = frame.evaluate(value)
            if len(spread) == 1 and isinstance(spread[0].value, v.Mapping):
                items |= spread[0].value.items
                is_open = is_open or spread[0].value.is_open
            else:
                is_open = True
        else:
            name = literal(key)
            items[name if isinstance(name, str) else describe(key)] = v.Binding(value, frame)
    return (Alternative(v.Mapping(items, is_open)),)


def subscript(node: ast.Subscript, frame: Frame) -> Alternatives:
    """An item: by a known key or position, else whatever the container may hold."""
    key = literal(node.slice)
    if key is MISSING and not isinstance(node.slice, ast.Slice | ast.Tuple):
        index = frame.evaluate(node.slice)
        stated = {one.value.value for one in index
                  if isinstance(one.value, v.KnownValue) and isinstance(one.value.value, str | int)}  # fmt: skip
        key = stated.pop() if len(stated) == 1 else key
        chosen = [one for one in index if isinstance(one.value, v.Action)] if key is MISSING else []
        if chosen:
            # `np.eye(n)[action]` and `actions[argmax(counts)]`: what the index chose is chosen. The best of several
            # draws is still a draw.
            actions = [one for one in frame.evaluate(node.value) if isinstance(one.value, v.Action)]
            return tuple(one for one in actions if one.value.rule == "sampled") or tuple(chosen)  # type: ignore[union-attr]
    held = frame.evaluate(node.value)
    return tuple(one.after(item) for item in held for one in _item(item, key, node, frame))


def _item(item: Alternative, key: object, node: ast.Subscript, frame: Frame) -> Alternatives:
    value = item.value
    if isinstance(value, v.Mapping):
        if isinstance(key, str) and key in value.items:
            return value.items[key].evaluate(key)
        if isinstance(key, str) and not value.is_open and "an item" not in value.items:
            return (Alternative(v.Unknown(describe(node), is_neutral=True)),)
        held = [one for name, binding in value.items.items() for one in binding.evaluate(name)]
        choice = f"which entry of {describe(node.value)} is taken is not known"
        if 0 < len(held) <= 24:
            return tuple(one.doubting(choice) for one in held)
        return (Alternative(v.Unknown(describe(node))),)
    if isinstance(value, v.Namespace):
        from gapfloor.audit.interpreter.attributes import setting

        return setting(str(key), value, node, frame)
    if isinstance(value, v.Sequence):
        if isinstance(node.slice, ast.Slice):
            return (item,)
        if isinstance(key, int) and not value.is_unordered:
            return project((item,), key)
        return elements((item,))
    if is_ranking(value):
        return (Alternative(part_of_ranking(value, is_place=key in (1, -1))),)
    if isinstance(value, v.Action | v.Computed | v.Noise | v.Environment):
        return (item,)
    if isinstance(value, v.Unknown) and value.is_neutral:
        return (item,)
    if is_reader(value):
        return (replace(item, value=RECORDED),)
    if isinstance(value, v.ExternalObject) and is_deterministic_function(value.name):
        return (item,)  # a layer out of a list of layers
    text = value.text if isinstance(value, v.Unknown) else describe(node.value)
    return (Alternative(v.Unknown(f"{text}[{describe(node.slice)}]")),)


def project(alternatives: Alternatives, index: int) -> Alternatives:
    """Element `index` of what was evaluated."""
    found: list[Alternative] = []
    for item in alternatives:
        value = item.value
        if isinstance(value, v.Sequence) and not value.is_unordered:
            stars = [number for number, one in enumerate(value.elements) if isinstance(one, ast.Starred)]
            position = index if index >= 0 else len(value.elements) + index
            if not 0 <= position < len(value.elements) or (stars and position >= stars[0] and index >= 0):
                found.append(Alternative(v.Unknown("an element of a list")).after(item))
            else:
                inner = value.frame.evaluate(value.elements[position])
                found.extend(one.after(item).noting(*item.marks) for one in inner)
        elif isinstance(value, v.Sequence):
            found.extend(elements((item,)))
        elif isinstance(value, v.Action) and index > 0 and isinstance(value.node, ast.Call):
            found.append(replace(item, value=v.Unknown("a further result of the acting call")))
        elif is_ranking(value):
            found.append(replace(item, value=part_of_ranking(value, is_place=index in (1, -1))))
        elif isinstance(value, v.ExternalObject | v.External):
            found.append(replace(item, value=v.Unknown(f"part {index} of {value.name}()")))
        else:
            found.append(item)
    return tuple(found)


def elements(alternatives: Alternatives) -> Alternatives:
    """What a loop over, or an element of, something can be; an empty collection is not known, not nothing."""
    found: list[Alternative] = []
    for item in alternatives:
        value = item.value
        if isinstance(value, v.Sequence):
            for one in value.elements[:8]:
                inner = value.frame.evaluate(one)
                if isinstance(one, ast.Starred):
                    inner = elements(inner)
                found.extend(each.after(item) for each in inner)
            if not value.elements or len(value.elements) > 8:
                found.append(Alternative(v.Unknown("an element of a list", is_neutral=True)))
        elif isinstance(value, v.Mapping) and value.items:
            for name, binding in value.items.items():
                found.extend(one.after(item) for one in binding.evaluate(name))
        elif isinstance(
            value,
            (v.Environment | v.Action | v.Callable | v.Class | v.Instance | v.Computed | v.Noise, v.Unknown),
        ) or (isinstance(value, v.ExternalObject) and is_plain(item)):
            found.append(item)
        elif is_reader(value):
            found.append(replace(item, value=RECORDED))
        else:
            found.append(
                Alternative(v.Unknown("an element of something unknown", is_neutral=True)).after(item)
            )
    return tuple(found)


def looped_over(node: ast.AST | None, path: tuple[int, ...]) -> tuple[ast.AST | None, tuple[int, ...]]:
    """What a loop takes its elements from, through `enumerate`, `zip` and the like, and the rest of the path."""
    while isinstance(node, ast.Call) and not node.keywords and node.args:
        name = last_name(node.func)
        if name in ("reversed", "tqdm", "trange", "list", "tuple", "sorted") and len(node.args) == 1:
            node = node.args[0]
        elif name == "enumerate" and path[:1] == (1,):
            node, path = node.args[0], path[1:]
        elif name == "zip" and path and 0 <= path[0] < len(node.args):
            node, path = node.args[path[0]], path[1:]
        else:
            break
    return node, path


def with_stores(found: Alternatives, name: str, use: ast.AST, frame: Frame) -> Alternatives:
    """What a name stands for, with what its scope puts into it: `actions[i] = ...`, `actions.append(a)`."""
    if not any(
        isinstance(item.value, v.Mapping | v.Sequence | v.Action | v.Computed | v.Unknown) for item in found
    ):
        return found
    stores = stores_in(frame.scope).get(name, [])
    if not stores:
        return found
    result = list(found)
    around = {id(node) for node, _ in branch_path(frame.module, use, frame.scope)}
    for place, (statement, key, expression) in enumerate(stores):
        inside = {id(node) for node, _ in branch_path(frame.module, statement, frame.scope)}
        if place_of(statement) > place_of(use) and not inside & around:
            continue
        if any(node is use for node in own_nodes(statement)):
            continue  # `actions[i] = f(actions)` reads what was there before
        result = _stored(result, statement, key, expression, frame)
        if place > 12:
            return tuple(item.doubting(f"{name} is changed in many places") for item in result)
    return tuple(result)


def _stored(
    found: list[Alternative],
    statement: ast.AST,
    key: ast.expr | None,
    expression: ast.expr,
    frame: Frame,
) -> list[Alternative]:
    """The alternatives of a container after one statement that puts something in."""
    plain = [item for item in found if not isinstance(item.value, v.Mapping | v.Sequence)]
    result = [
        replace(item, value=with_item(item.value, key, expression, frame))
        for item in found
        if isinstance(item.value, v.Mapping | v.Sequence)
    ]
    if not plain:
        return result
    guards = guards_of(frame, statement)
    if key is not None and frame.truth(key)[0] is None and is_random(key, frame):
        guards.append(v.Guard(key, True, frame))
    stored = [one.under(*guards) for one in frame.evaluate(expression)]
    acting = (v.Action, v.Computed, v.Unknown, v.ExternalObject)
    kept = [one for one in stored if isinstance(one.value, acting)]
    # An array that was only made holds nothing yet.
    filled = [item for item in plain if not isinstance(item.value, v.Computed) or item.value.is_observed]
    return [*result, *(filled if kept else plain), *kept]


def with_item(
    value: v.Mapping | v.Sequence, key: ast.expr | None, expression: ast.expr, frame: Frame
) -> v.Mapping | v.Sequence:
    """A dictionary or list with one more item."""
    if isinstance(value, v.Sequence):
        return v.Sequence((*value.elements, expression), frame, is_unordered=True)
    name = literal(key) if key is not None else None
    name = name if isinstance(name, str) else "an item"
    return v.Mapping(value.items | {name: v.Binding(expression, frame)}, value.is_open)


def is_random(test: ast.AST, frame: Frame) -> bool:
    """Whether a condition compares a random draw, written in place or under a name."""
    return any(
        isinstance(item.value, v.Noise)
        for node in ast.walk(test)
        if isinstance(node, ast.Name | ast.Attribute | ast.Call)
        for item in frame.evaluate(node)
    )
