"""Whether a condition holds, as far as constants, defaults and settings at their defaults can tell."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.values import Alternative, Frame

if TYPE_CHECKING:
    pass


_COMPARISONS = {
    ast.Eq: operator.eq, ast.Is: operator.eq, ast.NotEq: operator.ne, ast.IsNot: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_SPELT = frozenset({"0", "1", "false", "true", "no", "yes", "off", "on"})


def decide(test: ast.AST, frame: Frame) -> tuple[bool | None, list[Alternative]]:
    """Whether a condition holds (options at their defaults), and the constants that say so."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        known, used = decide(test.operand, frame)
        return (None if known is None else not known), used
    if isinstance(test, ast.BoolOp):
        return _of_parts(test, frame)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _of_comparison(test, frame)
    if isinstance(test, ast.Compare | ast.BinOp):
        return None, []
    alternatives = frame.evaluate(test)
    truths = {_truthiness(item.value) for item in alternatives}
    if len(truths) == 1:
        return truths.pop(), list(alternatives)
    return None, list(alternatives)


def _of_parts(test: ast.BoolOp, frame: Frame) -> tuple[bool | None, list[Alternative]]:
    decisive = isinstance(test.op, ast.Or)
    parts = [decide(value, frame) for value in test.values]
    for known, used in parts:
        if known is decisive:
            return known, used
    everything = [item for _, used in parts for item in used]
    if all(known is not None for known, _ in parts):
        return not decisive, everything
    return None, everything


def _of_comparison(test: ast.Compare, frame: Frame) -> tuple[bool | None, list[Alternative]]:
    left = frame.evaluate(test.left)
    right = frame.evaluate(test.comparators[0])
    answers = {_compare(test.ops[0], one.value, other.value) for one in left for other in right}
    used = [*left, *(item for item in right if item.origin != "literal")]
    return (answers.pop() if len(answers) == 1 else None), used


def _truthiness(value: v.Value) -> bool | None:
    if isinstance(value, v.KnownValue):
        # A string that spells a number or a truth value was probably meant as one: do not guess.
        is_spelt = isinstance(value.value, str) and value.value.strip().lower() in _SPELT
        return None if is_spelt else bool(value.value)
    if isinstance(value, v.Environment | v.Instance | v.Callable | v.Class | v.Module):
        return True
    if isinstance(value, v.ExternalObject) and value.name.rsplit(".", 1)[-1][:1].isupper():
        return True  # an object of a library's class; what a function gives back may be anything
    if isinstance(value, v.Sequence):
        return bool(value.elements)
    return None


def _compare_noise(sign: ast.cmpop, left: v.Value, right: v.Value) -> bool | None:
    """A uniform draw from [0, 1) against a number that it can never, or always, pass: epsilon 0 or 1."""
    is_left = isinstance(left, v.Noise)
    noise, other = (left, right) if is_left else (right, left)
    number = other.value if isinstance(other, v.KnownValue) else None
    if not isinstance(noise, v.Noise) or noise.kind != "uniform" or not isinstance(noise.node, ast.Call):
        return None
    if not isinstance(number, int | float) or 0 < number < 1:
        return None
    is_below = isinstance(sign, ast.Lt | ast.LtE) == is_left
    if not isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return None
    return (number >= 1) if is_below else (number <= 0)


def _compare(sign: ast.cmpop, left: v.Value, right: v.Value) -> bool | None:
    if isinstance(sign, ast.Is | ast.IsNot) and isinstance(right, v.KnownValue) and right.value is None:
        if isinstance(left, v.Unknown):
            return None
        is_none = isinstance(left, v.KnownValue) and left.value is None
        return is_none == isinstance(sign, ast.Is)
    if isinstance(left, v.Noise) or isinstance(right, v.Noise):
        return _compare_noise(sign, left, right)
    if not isinstance(left, v.KnownValue) or not isinstance(right, v.KnownValue):
        return None
    function = _COMPARISONS.get(type(sign))
    try:
        return bool(function(left.value, right.value)) if function is not None else None
    except TypeError:
        return None
