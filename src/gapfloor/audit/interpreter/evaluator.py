"""What an expression can stand for: attributes and operators (names are in `names.py`, calls in `calls.py`).

It follows values backwards through assignments, parameters, closures, modules and attributes, one call frame at a
time, so that a default two frames up is seen as that and a constant passed at one call is not mixed with another.
"""

from __future__ import annotations

import ast
import operator
import time
from dataclasses import replace

from gapfloor.audit.interpreter import calls
from gapfloor.audit.interpreter import conditions as truths
from gapfloor.audit.interpreter.binding import bind
from gapfloor.audit.interpreter.names import NameModel
from gapfloor.audit.interpreter.object_state import StateModel
from gapfloor.audit.interpreter.objects import ObjectModel
from gapfloor.audit.interpreter.options import OptionTable, is_missing, literal
from gapfloor.audit.interpreter.primitives import RANKINGS, is_random_test
from gapfloor.audit.interpreter.randomness import combine, is_deterministic_function, is_settled
from gapfloor.audit.interpreter.reaching_definitions import Assignment, conditions, definitions_in
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Binding,
    Callable,
    Class,
    Computed,
    Environment,
    External,
    ExternalObject,
    Frame,
    Guard,
    Instance,
    KnownValue,
    Mapping,
    Mark,
    Namespace,
    Noise,
    Option,
    Sequence,
    Unknown,
    Value,
    describe,
    element,
    identity,
)
from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, Index, ModuleInfo, last_name, own_nodes

DEEPEST_EVALUATION = 90
MOST_ALTERNATIVES = 16
MOST_STEPS = 400_000
MOST_WALL_SECONDS = 35.0


class Evaluator:
    """Evaluates expressions in frames; remembers what it has seen and stops at a budget."""

    def __init__(
        self,
        index: Index,
        *,
        most_steps: int = MOST_STEPS,
        deadline: float | None = None,
        options: OptionTable | None = None,
    ) -> None:
        self.index = index
        self.options = options if options is not None else OptionTable(index)
        self.names = NameModel(self)
        self.objects = ObjectModel(self)
        self.state = StateModel(self)
        self.most_steps = most_steps
        self.deadline = deadline
        self._started = time.perf_counter()
        """Moment on the clock `time.process_time` after which nothing new is followed."""
        self.steps = 0
        self._depth = 0
        self._active: set[tuple[int, int]] = set()
        self._definitions: dict[ast.AST, dict[str, list[Assignment]]] = {}
        self._module_frames: dict[str, Frame] = {}

    @property
    def is_exhausted(self) -> bool:
        """Whether the budget ran out, so that an absence proves nothing."""
        return self.steps > self.most_steps

    def module_frame(self, module: ModuleInfo) -> Frame:
        """The frame of a module's own body."""
        return self._module_frames.setdefault(module.path, Frame(module=module))

    def definitions(self, module: ModuleInfo, scope: ast.AST) -> dict[str, list[Assignment]]:
        """The definitions of a scope, computed once."""
        if scope not in self._definitions:
            self._definitions[scope] = definitions_in(module, scope)
        return self._definitions[scope]

    def evaluate(self, node: ast.AST | None, frame: Frame) -> tuple[Alternative, ...]:
        """The alternatives of `node` in `frame`; at least one, unless it depends on itself alone."""
        if node is None:
            return (Alternative(KnownValue(None), origin="literal"),)
        if node in frame.cache:
            return frame.cache[node]
        key = (id(node), id(frame))
        self._count_step()
        if key in self._active:
            return ()
        if self._depth > DEEPEST_EVALUATION or self.is_exhausted:
            return (Alternative(Unknown(describe(node))),)
        self._active.add(key)
        self._depth += 1
        try:
            found = self._tidy(self._dispatch(node, frame))
        finally:
            self._depth -= 1
            self._active.discard(key)
        if not self._active or found:
            frame.cache[node] = found
        return found

    def _count_step(self) -> None:
        self.steps += 1
        if self.deadline is None or self.steps % 128:
            return
        # On a busy machine the clock on the wall runs ahead of the processor's.
        if time.process_time() > self.deadline or time.perf_counter() - self._started > MOST_WALL_SECONDS:
            self.steps += self.most_steps

    def _tidy(self, found: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
        """Each alternative once, none that contradicts itself, and the likeliest where there are too many."""
        if len(found) < 2:
            return found
        kept: dict[object, Alternative] = {}
        for item in found:
            if not item.is_contradictory:
                conditions_met = frozenset(
                    (id(guard.test), id(guard.frame), guard.holds) for guard in item.guards
                )
                kept.setdefault((identity(item.value), item.origin, conditions_met), item)
        if len(kept) > MOST_ALTERNATIVES:
            return tuple(sorted(kept.values(), key=self.is_unlikely))[:MOST_ALTERNATIVES]
        return tuple(kept.values())

    def is_unlikely(self, item: Alternative) -> bool:
        """Whether a condition of the alternative does not hold, settings at their defaults."""
        for guard in item.guards:
            known, _ = self.truth(guard.test, guard.frame)
            if known is not None and known != guard.holds:
                return True
        return False

    def _dispatch(self, node: ast.AST, frame: Frame) -> tuple[Alternative, ...]:
        if isinstance(node, ast.Constant):
            return (Alternative(KnownValue(node.value), origin="literal"),)
        if isinstance(node, ast.Name):
            return self.names.at(node.id, node, frame)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, frame)
        if isinstance(node, ast.Call):
            return calls.evaluate_call(self, node, frame)
        if isinstance(node, ast.IfExp):
            return self._either(node.test, node.body, node.orelse, frame)
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node, frame)
        if isinstance(node, ast.Tuple | ast.List):
            return (Alternative(Sequence(tuple(node.elts), frame)),)
        if isinstance(node, ast.Dict):
            return self._dict(node, frame)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, frame)
        if isinstance(node, ast.Lambda):
            return (Alternative(Callable(frame.module.functions[node], parent=frame)),)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            return self._comprehension(node, frame)
        if isinstance(node, ast.DictComp):
            return self._dict_comprehension(node, frame)
        if isinstance(node, ast.JoinedStr):
            return self._text(node, frame)
        if isinstance(node, ast.Await | ast.Starred | ast.NamedExpr):
            return self.evaluate(node.value, frame)
        if isinstance(node, ast.BinOp):
            return self._bin_op(node, frame)
        if isinstance(node, ast.UnaryOp | ast.Compare):
            return self._truth_value(node, frame)
        return (Alternative(Unknown(describe(node))),)

    def _either(
        self, test: ast.expr, body: ast.expr, orelse: ast.expr, frame: Frame
    ) -> tuple[Alternative, ...]:
        first = [item.under(Guard(test, True, frame)) for item in self.evaluate(body, frame)]
        second = [item.under(Guard(test, False, frame)) for item in self.evaluate(orelse, frame)]
        return (*first, *second)

    def _bool_op(self, node: ast.BoolOp, frame: Frame) -> tuple[Alternative, ...]:
        known, _ = self.truth(node, frame)
        if known is not None and isinstance(node.op, ast.And):
            return (Alternative(KnownValue(known)),)
        found = [item for value in node.values for item in self.evaluate(value, frame)]
        return tuple(found)

    def _dict(self, node: ast.Dict, frame: Frame) -> tuple[Alternative, ...]:
        items: dict[str, Binding] = {}
        is_open = False
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str | int):
                items[str(key.value)] = Binding(value, frame)
            elif key is None:  # **mapping
                inner = self.evaluate(value, frame)
                if len(inner) == 1 and isinstance(inner[0].value, Mapping):
                    items.update(inner[0].value.items)
                    is_open = is_open or inner[0].value.is_open
                else:
                    items, is_open = {}, True
            else:
                name = self.evaluate(key, frame)
                text = plain_text(name[0].value) if len(name) == 1 else None
                if text is None:
                    is_open = True
                else:
                    items[text] = Binding(value, frame)
        return (Alternative(Mapping(items, is_open=is_open)),)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> tuple[Alternative, ...]:
        index = literal(node.slice)
        base = self.evaluate(node.value, frame)
        if isinstance(index, int) and not is_missing(index):
            return self.project(base, index)
        found: list[Alternative] = []
        for item in base:
            if isinstance(item.value, Mapping) and isinstance(index, str) and index in item.value.items:
                found.extend(self.evaluate_binding(item.value.items[index], index))
            elif isinstance(item.value, Action | Environment | Computed | Noise):
                found.append(item)
            elif isinstance(item.value, Mapping):
                found.extend(self._item_of(item.value, node, frame))
            elif isinstance(item.value, Sequence):
                found.extend(one.under(*item.guards) for one in self.names.elements((item,)))
            elif isinstance(item.value, ExternalObject) and is_deterministic_function(item.value.name):
                found.append(Alternative(Computed(node, frame), item.guards, item.marks))
            elif isinstance(index, str) and isinstance(item.value, Unknown | Namespace):
                found.extend(self.objects.attribute(item, index, node, frame))
            else:
                found.append(Alternative(Unknown(describe(node))))
        return tuple(found)

    def _dict_comprehension(self, node: ast.DictComp, frame: Frame) -> tuple[Alternative, ...]:
        """A mapping whose values are alike; the keys are not known."""
        inner = self.evaluate(node.value, frame)
        if any(isinstance(item.value, Action | Environment | Computed) for item in inner):
            return inner
        return (Alternative(Mapping({}, is_open=True)),)

    def _text(self, node: ast.JoinedStr, frame: Frame) -> tuple[Alternative, ...]:
        """A formatted string whose parts are all known."""
        parts: list[str] = []
        origin = "literal"
        for value in node.values:
            inner = value.value if isinstance(value, ast.FormattedValue) else value
            found = self.evaluate(inner, frame)
            text = plain_text(found[0].value) if len(found) == 1 else None
            if text is None:
                return (Alternative(Unknown(describe(node))),)
            origin = "option" if found[0].origin == "option" else origin
            parts.append(text)
        return (Alternative(KnownValue("".join(parts)), origin=origin),)

    def _item_of(self, value: Mapping, node: ast.Subscript, frame: Frame) -> list[Alternative]:
        """The item under a key that is not written in place: the key's default where a setting has one, else any."""
        keys = self.evaluate(node.slice, frame)
        names = [plain_text(item.value) for item in keys]
        found: list[Alternative] = []
        if names and all(name is not None and name in value.items for name in names):
            for key, name in zip(keys, names, strict=True):
                assert name is not None
                for one in self.evaluate_binding(value.items[name], name):
                    found.append(one.under(*key.guards).noting(*key.marks))
            return found
        for name, binding in value.items.items():
            found.extend(self.evaluate_binding(binding, name))
        if value.is_open or not value.items:
            found.append(Alternative(Unknown(describe(node))))
        return found

    def _comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame
    ) -> tuple[Alternative, ...]:
        inner = self.evaluate(node.elt, frame)
        kinds = Action | Environment | Callable | Instance | Computed | Noise
        if any(isinstance(item.value, kinds) for item in inner):
            return inner
        return (Alternative(Unknown(describe(node))),)

    def _bin_op(self, node: ast.BinOp, frame: Frame) -> tuple[Alternative, ...]:
        left, right = self.evaluate(node.left, frame), self.evaluate(node.right, frame)
        folded = folded_number(node, left, right)
        if folded is not None:
            return (folded,)
        if isinstance(node.op, ast.Mult):
            masked = self._masked(node, left, right, frame)
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
        self, node: ast.BinOp, left: tuple[Alternative, ...], right: tuple[Alternative, ...], frame: Frame
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

    def _truth_value(self, node: ast.expr, frame: Frame) -> tuple[Alternative, ...]:
        number = literal(node)
        if not is_missing(number):
            return (Alternative(KnownValue(number), origin="literal"),)
        if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
            return self._unary(node, frame)
        known, used = self.truth(node, frame)
        if known is None:
            if any(isinstance(item.value, Noise) for item in used):
                return (Alternative(Noise("mask", node, frame)),)
            return combine([tuple(used)], node, frame) if used else (Alternative(Unknown(describe(node))),)
        origins = [item.origin for item in used if item.origin]
        marks = tuple(dict.fromkeys(mark for item in used for mark in item.marks))
        return (Alternative(KnownValue(known), (), marks, origins[0] if origins else "literal"),)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> tuple[Alternative, ...]:
        found = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Invert) and len(found) == 1 and isinstance(found[0].value, Noise):
            return (replace(found[0], value=opposite_mask(found[0].value)),)
        return combine([found], node, frame)

    def is_random_condition(self, test: ast.AST, frame: Frame) -> bool:
        """Whether a condition compares a random draw, written in place or under a name."""
        if is_random_test(test):
            return True
        return any(
            isinstance(node, ast.Name | ast.Attribute | ast.Call)
            and any(isinstance(item.value, Noise) for item in self.evaluate(node, frame))
            for node in ast.walk(test)
        )

    def project(self, alternatives: tuple[Alternative, ...], index: int) -> tuple[Alternative, ...]:
        """Element `index` of what was evaluated."""
        found: list[Alternative] = []
        for item in alternatives:
            value = item.value
            if isinstance(value, Sequence):
                chosen = None if value.is_unordered else element(value.elements, index)
                if value.is_unordered:
                    found.extend(one.under(*item.guards) for one in self.names.elements((item,)))
                elif chosen is None:
                    found.append(Alternative(Unknown(), item.guards))
                else:
                    inner = self.evaluate(chosen, value.frame)
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
                for name, binding in value.items.items():
                    found.extend(one.under(*item.guards) for one in self.evaluate_binding(binding, name))
                if value.is_open or not value.items:
                    found.append(Alternative(Unknown("an item of a mapping"), item.guards))
            else:
                text = value.text if isinstance(value, Unknown) else "an element of something unknown"
                found.append(Alternative(Unknown(text), item.guards))
        return tuple(found)

    def evaluate_binding(self, binding: Binding, name: str) -> tuple[Alternative, ...]:
        """What a parameter or key is bound to, with the way the constant came there."""
        if binding.expression is None or binding.frame is None:
            return (Alternative(Unknown(name)),)
        inner = self.evaluate(binding.expression, binding.frame)
        place = (binding.frame.module.path, binding.expression.lineno)
        shown = describe(binding.expression)
        found = []
        for item in inner:
            if binding.is_default:
                constant = isinstance(item.value, KnownValue)
                mark = Mark(*place, f"default argument {name}={shown}")
                origin = "option" if binding.is_setting else "default"
                found.append(item.noting(mark).from_origin(origin if constant else item.origin))
            elif isinstance(binding.expression, ast.Constant):
                found.append(
                    item.noting(Mark(*place, f"{name}={shown} passed at the call")).from_origin("argument")
                )
            else:
                origin = "argument" if item.origin == "literal" else item.origin
                found.append(item.noting(Mark(*place, f"passed on as {name}")).from_origin(origin))
        return tuple(found)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> tuple[Alternative, ...]:
        found: list[Alternative] = []
        if node.attr == "training" and isinstance(node.value, ast.Attribute):
            # The mode of a part is the mode of the module that holds it.
            for item in self.evaluate(node.value.value, frame):
                if isinstance(item.value, Instance) and self.objects.is_network(item.value.info):
                    return self.objects.attribute(item, "training", node, frame)
        for item in self.evaluate(node.value, frame):
            inner = self.objects.attribute(item, node.attr, node, frame)
            found.extend(one.under(*item.guards) for one in inner)
        return tuple(found)

    def returns(self, frame: Frame) -> tuple[Alternative, ...]:
        """What a call of the frame's function can give back."""
        function = frame.function
        assert function is not None
        if isinstance(function.node, ast.Lambda):
            return self.evaluate(function.node.body, frame)
        found: list[Alternative] = []
        for node in own_nodes(function.node):
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                guards = [
                    Guard(test, holds, frame)
                    for test, holds in conditions(frame.module, node, function.node, None)
                ]
                if any(self.is_ruled_out(guard) for guard in guards):
                    continue
                found.extend(item.under(*guards) for item in self.evaluate(node.value, frame))
        return tuple(found) or (Alternative(Unknown(f"{function.name}()")),)

    def is_ruled_out(self, guard: Guard) -> bool:
        """Whether a condition cannot hold, by constants that no user can set."""
        known, used = self.truth(guard.test, guard.frame)
        return known is not None and known != guard.holds and all(item.origin != "option" for item in used)

    def truth(self, test: ast.AST, frame: Frame) -> tuple[bool | None, list[Alternative]]:
        """Whether a condition holds (options at their defaults), and the constants that say so."""
        if test not in frame.truths:
            answer = truths.decide(self, test, frame)
            if self._active:
                return answer  # inside another evaluation a part may still be missing
            frame.truths[test] = answer
        return frame.truths[test]

    def bound_frame(
        self,
        function: FunctionInfo,
        call: ast.Call | None,
        caller: Frame,
        receiver: Alternative | None,
        parent: Frame | None,
        preset: tuple[tuple[str, Binding], ...] = (),
    ) -> Frame:
        """The frame of calling `function` at `call`, with its parameters bound."""
        key = (id(call), id(function), id(receiver.value) if receiver else 0)
        if key not in caller.children:
            caller.children[key] = bind(self, function, call, caller, receiver, parent, preset)
        return caller.children[key]

    def class_of(self, node: ast.expr, module: ModuleInfo) -> ClassInfo | str:
        """The class that a base expression names: of the repository, or the dotted name of an external one."""
        while isinstance(node, ast.Subscript):  # a generic base: Wrapper[Observation, Action]
            node = node.value
        for item in self.evaluate(node, self.module_frame(module)):
            if isinstance(item.value, Class):
                return item.value.info
            if isinstance(item.value, External):
                return item.value.name
        return last_name(node)


def plain_text(value: Value) -> str | None:
    """The text of a known string or number, settings at their defaults; None for anything else."""
    if isinstance(value, KnownValue) and isinstance(value.value, str | int | float):
        return str(value.value)
    if isinstance(value, Option) and value.has_default and isinstance(value.default, str | int | float):
        return str(value.default)
    return None


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
