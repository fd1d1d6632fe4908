"""Levels that are chosen when an episode begins: `reset(env_id=i)`, `reset_task(i)`, `reset(seed=s)`.

The number that is handed over is followed to the range, list or slice from which it is taken. Two choices are
compared as sets, like the levels of constructors. A seed counts as a level only where training takes seeds from a
finite set; a single seed is how experiments are repeated.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.reaching_definitions import Assignment, branch_path, reaching
from gapfloor.audit.interpreter.values import (
    Environment,
    Frame,
    Instance,
    KnownValue,
    Mark,
    Option,
    describe,
    identity,
)
from gapfloor.audit.judgement.explore import StepEvent
from gapfloor.audit.judgement.reachable_names import method_of
from gapfloor.audit.reading.index import last_name, own_nodes

_SELECTOR = re.compile(r"^(env|task|level|scenario|map|maze|variant)(_?(id|idx|index|seed|number))?$|^idx$")
_SETTERS = frozenset(
    {"reset_task", "set_task", "set_level", "reset_to_level", "reset_env_id", "set_task_idx"}
)
_SEEDS = frozenset({"seed", "seeds"})
_KEY = re.compile(r"rng|key", re.IGNORECASE)
_DEEPEST = 8


@dataclass(frozen=True)
class LevelChoice:
    """Numbers from `low` up to `high`, which is not included; a bound is a number or the words for one."""

    low: int | str | None
    high: int | str | None
    base: str = ""
    """The sequence whose positions are meant, where a slice is taken; empty for numbers themselves."""
    is_seed: bool = False
    mark: Mark | None = None

    @property
    def is_known(self) -> bool:
        """Whether both bounds can be read."""
        return self.low is not None and self.high is not None

    @property
    def is_several(self) -> bool:
        """Whether there is more than one number in it, as far as can be read."""
        numbers = (self.low, self.high)
        if not self.is_known:
            return False
        return numbers[1] - numbers[0] > 1 if _are_numbers(numbers) else True  # type: ignore[operator]


def compare_choices(test: LevelChoice, train: LevelChoice) -> bool | None:
    """Whether the numbers of a test are held out from those of training: False when training plays them too."""
    if not (test.is_known and train.is_known) or test.base != train.base or test.is_seed != train.is_seed:
        return None
    if (test.low, test.high) == (train.low, train.high):
        return False
    # A slice that ends where the other begins shares nothing with it, whatever the number is.
    if test.low == train.high or test.high == train.low:
        return True
    bounds = (test.low, test.high, train.low, train.high)
    if not _are_numbers(bounds) or test.base:
        return None
    low, high, train_low, train_high = bounds
    if train_low <= low and high <= train_high:  # type: ignore[operator]
        return False
    return True if low >= train_high or high <= train_low else None  # type: ignore[operator]


def level_choice(evaluator: Evaluator, event: StepEvent) -> LevelChoice | None:
    """The choice that is in force when an environment is stepped: the last one before it, in the nearest frame."""
    chain = event.frame.chain()
    known = {identity(item.value) for item in event.environments}
    stepped = method_of(event.node)
    receiver = stepped.value if stepped is not None else None
    for position in range(len(chain) - 1, -1, -1):
        here = chain[position]
        inner = event.node if here is event.frame else chain[position + 1].call
        found: ast.Call | None = None
        for node in own_nodes(here.scope):
            if not isinstance(node, ast.Call) or _chooser(node) is None:
                continue
            if inner in here.module.order and here.module.order[node] > here.module.order[inner]:
                continue
            if _is_same_environment(evaluator, node, here, known, receiver):
                found = node
        if found is not None:
            return _choice_of(evaluator, found, here)
    return None


def _chooser(call: ast.Call) -> tuple[ast.expr, bool] | None:
    """The expression that chooses the level, and whether it is a seed."""
    method = method_of(call)
    if method is None:
        return None
    if method.attr in _SETTERS and call.args:
        # In JAX the first argument is the source of randomness: `reset_to_level(rng, level, params)`.
        is_keyed = len(call.args) > 1 and _KEY.search(describe(call.args[0]))
        return call.args[1 if is_keyed else 0], False
    if method.attr not in ("reset", *_SETTERS):
        return None
    for keyword in call.keywords:
        if keyword.arg is not None and _SELECTOR.match(keyword.arg):
            return keyword.value, False
    for keyword in call.keywords:
        if keyword.arg in _SEEDS and not _is_nothing(keyword.value):
            return keyword.value, True
    return None


def _is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_same_environment(
    evaluator: Evaluator, call: ast.Call, frame: Frame, known: set[object], receiver: ast.expr | None
) -> bool:
    method = method_of(call)
    assert method is not None
    found = {
        identity(item.value)
        for item in evaluator.evaluate(method.value, frame)
        if isinstance(item.value, Environment)
    }
    if found and known:
        return bool(found & known)
    return receiver is not None and last_name(method.value) == last_name(receiver)


def _choice_of(evaluator: Evaluator, call: ast.Call, frame: Frame) -> LevelChoice:
    chosen = _chooser(call)
    assert chosen is not None
    expression, is_seed = chosen
    low, high, base = _NumberReader(evaluator).number(expression, frame, _DEEPEST)
    mark = Mark(frame.module.path, call.lineno, f"level chosen by {describe(expression)}")
    return LevelChoice(low, high, base, is_seed, mark)


_Bounds = tuple[int | str | None, int | str | None, str]
_NOT_KNOWN: _Bounds = (None, None, "")


class _NumberReader:
    """Finds the range from which a number is taken."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def number(self, node: ast.AST | None, frame: Frame | None, depth: int) -> _Bounds:
        """The range of a number: of a loop, of a draw, or the number itself."""
        if node is None or frame is None or depth == 0:
            return _NOT_KNOWN
        if isinstance(node, ast.Name):
            single = self._definition(node, frame)
            if isinstance(single, Assignment):
                if single.kind == "element" and not single.path:
                    return self.collection(single.expression, frame, depth - 1)
                if single.kind == "assign" and not single.path:
                    return self.number(single.expression, frame, depth - 1)
                return _NOT_KNOWN
            if single is None and node.id in frame.bindings:
                binding = frame.bindings[node.id]
                return self.number(binding.expression, binding.frame, depth - 1)
            return _NOT_KNOWN
        if isinstance(node, ast.Call):
            return self._drawn(node, frame, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._shifted(node, frame, depth)
        bound = self._bound(node, frame)
        return (bound, bound + 1, "") if isinstance(bound, int) else _NOT_KNOWN

    def collection(self, node: ast.AST | None, frame: Frame | None, depth: int) -> _Bounds:
        """The range of the elements of a collection."""
        if node is None or frame is None or depth == 0:
            return _NOT_KNOWN
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name in ("range", "arange") and 1 <= len(node.args) <= 2 and not node.keywords:
                low = self._bound(node.args[0], frame) if len(node.args) == 2 else 0
                return low, self._bound(node.args[-1], frame), ""
            if name in ("list", "tuple", "sorted", "array", "tqdm") and len(node.args) == 1:
                return self.collection(node.args[0], frame, depth - 1)
            return _NOT_KNOWN
        if isinstance(node, ast.ListComp) and len(node.generators) == 1:
            loop = node.generators[0]
            is_plain = isinstance(node.elt, ast.Name) and isinstance(loop.target, ast.Name)
            if is_plain and node.elt.id == loop.target.id and not loop.ifs:  # type: ignore[attr-defined]
                return self.collection(loop.iter, frame, depth - 1)
            return _NOT_KNOWN
        if isinstance(node, ast.Name | ast.Attribute):
            return self._named(node, frame, depth)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is None:
            low = self._bound(node.slice.lower, frame) if node.slice.lower is not None else 0
            high = self._bound(node.slice.upper, frame) if node.slice.upper is not None else "end"
            if any(isinstance(item, int) and item < 0 for item in (low, high)):
                return _NOT_KNOWN
            return low, high, f"{frame.module.path}:{describe(node.value)}"
        return _NOT_KNOWN

    def _named(self, node: ast.Name | ast.Attribute, frame: Frame, depth: int) -> _Bounds:
        if isinstance(node, ast.Name):
            single = self._definition(node, frame)
            if isinstance(single, Assignment):
                is_whole = single.kind == "assign" and not single.path
                return self.collection(single.expression, frame, depth - 1) if is_whole else _NOT_KNOWN
            binding = frame.bindings.get(node.id) if single is None else None
            return self.collection(binding.expression, binding.frame, depth - 1) if binding else _NOT_KNOWN
        receiver = frame.receiver.value if frame.receiver is not None else None
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if not is_own or not isinstance(receiver, Instance) or receiver.init is None:
            return _NOT_KNOWN
        init = receiver.init
        given = self.evaluator.definitions(init.module, init.scope).get(f"self.{node.attr}", [])
        is_single = len(given) == 1 and given[0].kind == "assign" and not given[0].path
        return self.collection(given[0].expression, init, depth - 1) if is_single else _NOT_KNOWN

    def _definition(self, node: ast.Name, frame: Frame) -> Assignment | bool | None:
        """The one definition of a name that reaches its use, None where there is none, True where there are several."""
        given = self.evaluator.definitions(frame.module, frame.scope).get(node.id, [])
        if not given:
            return None
        for loop, _ in reversed(branch_path(frame.module, node, frame.scope)):
            inside = [item for item in given if item.statement in (loop, *own_nodes(loop))]
            if len(inside) == 1 and inside[0].statement is loop:
                return inside[
                    0
                ]  # the variable of the loop around the use, which nothing else in the loop changes
            if inside:
                break
        alive, _ = reaching(frame.module, frame.scope, given, node)
        return alive[0] if len(alive) == 1 else True

    def _drawn(self, call: ast.Call, frame: Frame, depth: int) -> _Bounds:
        name = last_name(call.func)
        text = describe(call.func)
        if name == "int" and len(call.args) == 1:
            return self.number(call.args[0], frame, depth - 1)
        if name == "choice" and call.args:
            return self.collection(call.args[0], frame, depth - 1)
        if name not in ("randint", "integers", "randrange", "random_integers") or call.keywords:
            return _NOT_KNOWN
        low = self._bound(call.args[0], frame) if len(call.args) > 1 else 0
        high = self._bound(call.args[min(1, len(call.args) - 1)], frame) if call.args else None
        is_inclusive = name == "random_integers" or (
            name == "randint" and text in ("random.randint", "randint")
        )
        if is_inclusive and isinstance(high, int):
            high += 1
        return low, high, ""

    def _shifted(self, node: ast.BinOp, frame: Frame, depth: int) -> _Bounds:
        for fixed, moving in ((node.left, node.right), (node.right, node.left)):
            start = self._bound(fixed, frame)
            low, high, base = self.number(moving, frame, depth - 1)
            if isinstance(start, int) and isinstance(low, int) and isinstance(high, int) and not base:
                return start + low, start + high, ""
        return _NOT_KNOWN

    def _bound(self, node: ast.AST, frame: Frame) -> int | str | None:
        """A bound as a number, settings at their defaults; else the setting that it is, else None."""
        found = self.evaluator.evaluate(node, frame)
        if len(found) != 1:
            return None
        value = found[0].value
        if isinstance(value, Option):
            return value.default if isinstance(value.default, int) else f"setting {value.name}"
        if isinstance(value, KnownValue) and isinstance(value.value, int):
            return value.value
        return None


def _are_numbers(values: tuple[int | str | None, ...]) -> bool:
    return all(isinstance(item, int) for item in values)
