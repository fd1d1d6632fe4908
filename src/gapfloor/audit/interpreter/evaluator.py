"""What an expression can stand for (names, operators, containers, calls and attributes have files of their own).

It follows values backwards through assignments, parameters, closures, modules and attributes, one call frame at a
time, so that a default two frames up is seen as that and a constant passed at one call is not mixed with another.
"""

from __future__ import annotations

import ast

from gapfloor.audit.interpreter import calls, containers, operators
from gapfloor.audit.interpreter import conditions as truths
from gapfloor.audit.interpreter.binding import bind
from gapfloor.audit.interpreter.names import NameModel
from gapfloor.audit.interpreter.object_state import StateModel
from gapfloor.audit.interpreter.objects import ObjectModel
from gapfloor.audit.interpreter.options import OptionTable
from gapfloor.audit.interpreter.primitives import is_random_test
from gapfloor.audit.interpreter.reaching_definitions import Assignment, conditions, definitions_in
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Binding,
    Callable,
    Class,
    External,
    Frame,
    Guard,
    Instance,
    KnownValue,
    Mark,
    Noise,
    Sequence,
    Unknown,
    describe,
    identity,
)
from gapfloor.audit.reading.index import ClassInfo, FunctionInfo, Index, ModuleInfo, last_name, own_nodes

DEEPEST_EVALUATION = 90
MOST_ALTERNATIVES = 16
#: A budget of steps, not of time: the verdict is the same on a busy machine.
MOST_STEPS = 250_000


class Evaluator:
    """Evaluates expressions in frames; remembers what it has seen and stops at a budget."""

    def __init__(
        self,
        index: Index,
        *,
        most_steps: int = MOST_STEPS,
        options: OptionTable | None = None,
    ) -> None:
        self.index = index
        self.options = options if options is not None else OptionTable(index)
        self.names = NameModel(self)
        self.objects = ObjectModel(self)
        self.state = StateModel(self)
        self.most_steps = most_steps
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
        self.steps += 1
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
            return operators.both_or_either(self, node, frame)
        if isinstance(node, ast.Tuple | ast.List):
            return (Alternative(Sequence(tuple(node.elts), frame)),)
        if isinstance(node, ast.Dict):
            return containers.dictionary(self, node, frame)
        if isinstance(node, ast.Subscript):
            return containers.subscript(self, node, frame)
        if isinstance(node, ast.Lambda):
            return (Alternative(Callable(frame.module.functions[node], parent=frame)),)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
            return containers.comprehension(self, node, frame)
        if isinstance(node, ast.DictComp):
            return containers.dict_comprehension(self, node, frame)
        if isinstance(node, ast.JoinedStr):
            return operators.formatted_text(self, node, frame)
        if isinstance(node, ast.Await | ast.Starred | ast.NamedExpr):
            return self.evaluate(node.value, frame)
        if isinstance(node, ast.BinOp):
            return operators.arithmetic(self, node, frame)
        if isinstance(node, ast.UnaryOp | ast.Compare):
            return operators.truth_value(self, node, frame)
        return (Alternative(Unknown(describe(node))),)

    def _either(
        self, test: ast.expr, body: ast.expr, orelse: ast.expr, frame: Frame
    ) -> tuple[Alternative, ...]:
        first = [item.under(Guard(test, True, frame)) for item in self.evaluate(body, frame)]
        second = [item.under(Guard(test, False, frame)) for item in self.evaluate(orelse, frame)]
        return (*first, *second)

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
        return containers.project(self, alternatives, index)

    def evaluate_binding(self, binding: Binding, name: str) -> tuple[Alternative, ...]:
        """What a parameter or key is bound to, with the way the constant came there."""
        if binding.expression is None or binding.frame is None:
            return (Alternative(Unknown(name)),)
        inner = self.evaluate(binding.expression, binding.frame)
        if binding.is_setting and not binding.is_default:
            return inner  # a setting knows its own file and line
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
                refused = [guard for guard in guards if self.is_ruled_out(guard)]
                if refused and not all(self._is_by_default(guard) for guard in refused):
                    continue
                inner = [item.under(*guards) for item in self.evaluate(node.value, frame)]
                # An action that a default keeps out shows where the rule comes from; anything else is not wanted.
                found.extend(item for item in inner if not refused or isinstance(item.value, Action))
        return tuple(found) or (Alternative(Unknown(f"{function.name}()")),)

    def is_ruled_out(self, guard: Guard) -> bool:
        """Whether a condition cannot hold, by constants that no user can set."""
        known, used = self.truth(guard.test, guard.frame)
        return known is not None and known != guard.holds and all(item.origin != "option" for item in used)

    def _is_by_default(self, guard: Guard) -> bool:
        """Whether a condition is decided by defaults that no call overrides."""
        _, used = self.truth(guard.test, guard.frame)
        return {item.origin for item in used} == {"default"}

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
