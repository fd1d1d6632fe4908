"""Operators: arithmetic on numbers, actions, noise and masks; truth values; formatted text."""

from __future__ import annotations

import ast
import operator
from dataclasses import replace
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.containers import plain_text
from gapfloor.audit.interpreter.options import is_missing, literal
from gapfloor.audit.interpreter.primitives import is_random_test
from gapfloor.audit.interpreter.randomness import combine, is_settled
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Frame,
    Guard,
    KnownValue,
    Noise,
    Option,
    Unknown,
    Value,
    describe,
)

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator


def both_or_either(evaluator: Evaluator, node: ast.BoolOp, frame: Frame) -> tuple[Alternative, ...]:
    """What `a and b` or `a or b` can be."""
    known, _ = evaluator.truth(node, frame)
    if known is not None and isinstance(node.op, ast.And):
        return (Alternative(KnownValue(known)),)
    found = [item for value in node.values for item in evaluator.evaluate(value, frame)]
    return tuple(found)


def formatted_text(evaluator: Evaluator, node: ast.JoinedStr, frame: Frame) -> tuple[Alternative, ...]:
    """A formatted string whose parts are all known."""
    parts: list[str] = []
    origin = "literal"
    for value in node.values:
        inner = value.value if isinstance(value, ast.FormattedValue) else value
        found = evaluator.evaluate(inner, frame)
        text = plain_text(found[0].value) if len(found) == 1 else None
        if text is None:
            return (Alternative(Unknown(describe(node))),)
        origin = "option" if found[0].origin == "option" else origin
        parts.append(text)
    return (Alternative(KnownValue("".join(parts)), origin=origin),)


def arithmetic(evaluator: Evaluator, node: ast.BinOp, frame: Frame) -> tuple[Alternative, ...]:
    """What a binary operation gives: a number, an action, noise, or something computed."""
    left, right = evaluator.evaluate(node.left, frame), evaluator.evaluate(node.right, frame)
    folded = folded_number(node, left, right)
    if folded is not None:
        return (folded,)
    if isinstance(node.op, ast.Mult):
        masked = _masked(evaluator, node, left, right, frame)
        if masked is not None:
            return masked
    sides = [*left, *right]
    if isinstance(node.op, ast.Add | ast.BitOr) and _excludes(left, right):
        return tuple(sides)  # mask * one + (1 - mask) * other
    if not any(isinstance(item.value, Noise) for item in sides) and is_random_test(node):
        chosen = [item for item in sides if isinstance(item.value, Action)]
        if chosen:
            return tuple(
                Alternative(Action("noisy", node, frame), item.guards, item.marks) for item in chosen
            )
    if isinstance(node.op, ast.Mult | ast.Div):
        # A factor that cannot be read scales an action; it does not make another rule of it.
        for one, other in ((left, right), (right, left)):
            if is_settled(one) and all(isinstance(item.value, Unknown) for item in other):
                return combine([one], node, frame, is_arithmetic=True)
    return combine([left, right], node, frame, is_arithmetic=True)


def _masked(
    evaluator: Evaluator,
    node: ast.BinOp,
    left: tuple[Alternative, ...],
    right: tuple[Alternative, ...],
    frame: Frame,
) -> tuple[Alternative, ...] | None:
    """An action times a mask: nothing where the mask is zero, else the action under the mask's condition."""
    for mask, other in ((left, right), (right, left)):
        if len(mask) != 1:
            continue
        value = mask[0].value
        if isinstance(value, KnownValue) and value.value in (0, 1) and not isinstance(value.value, str):
            return other if value.value else (Alternative(KnownValue(0), mask[0].guards, mask[0].marks),)
        if isinstance(value, Noise) and value.kind in ("mask", "no mask"):
            assert isinstance(value.node, ast.expr)
            guard = Guard(value.node, value.kind == "mask", value.frame)
            return tuple(item.under(guard) for item in other)
    return None


def truth_value(evaluator: Evaluator, node: ast.expr, frame: Frame) -> tuple[Alternative, ...]:
    """The value of a comparison or a negation."""
    number = literal(node)
    if not is_missing(number):
        return (Alternative(KnownValue(number), origin="literal"),)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _unary(evaluator, node, frame)
    known, used = evaluator.truth(node, frame)
    if known is None:
        if any(isinstance(item.value, Noise) for item in used):
            return (Alternative(Noise("mask", node, frame)),)
        return combine([tuple(used)], node, frame) if used else (Alternative(Unknown(describe(node))),)
    origins = [item.origin for item in used if item.origin]
    marks = tuple(dict.fromkeys(mark for item in used for mark in item.marks))
    return (Alternative(KnownValue(known), (), marks, origins[0] if origins else "literal"),)


def _unary(evaluator: Evaluator, node: ast.UnaryOp, frame: Frame) -> tuple[Alternative, ...]:
    found = evaluator.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Invert) and len(found) == 1 and isinstance(found[0].value, Noise):
        return (replace(found[0], value=opposite_mask(found[0].value)),)
    return combine([found], node, frame)


def opposite_mask(value: Value) -> Value:
    """The mask that holds where the given one does not."""
    if isinstance(value, Noise) and value.kind in ("mask", "no mask"):
        return replace(value, kind="no mask" if value.kind == "mask" else "mask")
    return value


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}


def folded_number(
    node: ast.BinOp, left: tuple[Alternative, ...], right: tuple[Alternative, ...]
) -> Alternative | None:
    """The result of arithmetic on two known numbers, or `1 - mask`, or None."""
    if len(left) != 1 or len(right) != 1:
        return None
    one, other = left[0].value, right[0].value
    is_complement = isinstance(node.op, ast.Sub) and isinstance(one, KnownValue) and one.value == 1
    if is_complement and isinstance(other, Noise) and other.kind in ("mask", "no mask"):
        return replace(right[0], value=opposite_mask(other))
    numbers = []
    for value in (one, other):
        number = value.value if isinstance(value, KnownValue) else None
        if isinstance(value, Option) and value.has_default:
            number = value.default
        if not isinstance(number, int | float) or abs(number) > 1e12:
            return None
        numbers.append(number)
    function = _OPERATORS.get(type(node.op))
    if function is None:
        return None
    try:
        result = function(numbers[0], numbers[1])
    except (ZeroDivisionError, OverflowError):
        return None
    origins = [item.origin for item in (*left, *right)]
    origin = next((name for name in ("option", "default", "argument") if name in origins), "literal")
    guards, marks = (*left[0].guards, *right[0].guards), (*left[0].marks, *right[0].marks)
    return Alternative(KnownValue(result), guards, tuple(dict.fromkeys(marks)), origin)


def _excludes(left: tuple[Alternative, ...], right: tuple[Alternative, ...]) -> bool:
    """Whether each alternative of one side is ruled out by the condition of every one of the other."""

    def conditions_of(item: Alternative) -> dict[int, bool]:
        return {id(guard.test): guard.holds for guard in item.guards}

    pairs = [(conditions_of(one), conditions_of(other)) for one in left for other in right]
    return bool(pairs) and all(
        any(first.get(key, holds) != holds for key, holds in second.items()) for first, second in pairs
    )
