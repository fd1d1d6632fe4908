"""The evaluator: what an expression can stand for in one call frame.

It follows values backwards through assignments, parameters, closures, modules and attributes, so that a default two
frames up is seen as that and a constant passed at one call is not mixed with another. It is one object; the files next
to it hold its parts as functions (attributes, calls, library functions, operators).
"""

from __future__ import annotations

import ast
import builtins
import operator
from dataclasses import replace

from gapfloor.audit.interpreter import attributes, calls, operators
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.options import OptionTable
from gapfloor.audit.interpreter.reaching_definitions import (
    Assignment,
    conditions,
    definitions_in,
    guards_of,
    operation_of,
    reaching,
)
from gapfloor.audit.interpreter.values import Alternative, Frame, Mark, describe
from gapfloor.audit.reading.index import Index, ModuleInfo, own_nodes, place_of

DEEPEST_EVALUATION = 90
MOST_ALTERNATIVES = 16
#: Budgets of steps, not of time: the answer is the same on a busy machine. One chain of calls cannot spend it all.
MOST_STEPS = 150_000
MOST_STEPS_OF_A_CHAIN = 12_000
_BUILTINS = frozenset(name for name in dir(builtins) if name.islower())
_COMPARISONS = {
    ast.Eq: operator.eq, ast.Is: operator.eq, ast.NotEq: operator.ne, ast.IsNot: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_SPELT = frozenset({"0", "1", "false", "true", "no", "yes", "off", "on"})
#: A use after the end of any scope: names seen from outside have their final value.
END = ast.Pass()
EXHAUSTED = "the budget for this chain of calls ran out"


class Evaluator:
    """Evaluates expressions in frames; remembers what it has seen and stops at a budget."""

    def __init__(self, index: Index, options: OptionTable) -> None:
        self.index = index
        self.options = options
        self.steps = 0
        self._spent_before = 0
        self._depth = 0
        self._active: set[tuple[int, int]] = set()
        self._active_names: set[tuple[str, str]] = set()
        for module in index.modules.values():
            module.frame = Frame(self, module)

    bind = staticmethod(calls.bind)

    def begin_chain(self) -> None:
        """Give the next chain of calls a budget of its own."""
        self._spent_before = self.steps

    @property
    def is_exhausted(self) -> bool:
        """Whether the budget of this chain, or of the scan, ran out."""
        return self.steps > MOST_STEPS or self.steps - self._spent_before > MOST_STEPS_OF_A_CHAIN

    @property
    def is_spent(self) -> bool:
        """Whether the whole scan's budget ran out."""
        return self.steps > MOST_STEPS

    def evaluate(self, node: ast.AST | None, frame: Frame) -> tuple[Alternative, ...]:
        """The alternatives of `node` in `frame`; at least one, unless it depends on itself alone."""
        if node is None:
            return (Alternative(v.KnownValue(None), origin="literal"),)
        if node in frame.cache:
            return frame.cache[node]
        key = (id(node), id(frame))
        self.steps += 1
        if key in self._active:
            return ()
        if self._depth > DEEPEST_EVALUATION or self.is_exhausted:
            return (Alternative(v.Unknown(describe(node)), doubts=frozenset({EXHAUSTED})),)
        self._active.add(key)
        self._depth += 1
        try:
            found = self._tidy(self._dispatch(node, frame))
        finally:
            self._depth -= 1
            self._active.discard(key)
        is_cut = self.is_exhausted or any(EXHAUSTED in item.doubts for item in found)
        if (not self._active or found) and not is_cut:
            frame.cache[node] = found
        return found

    def _tidy(self, found: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
        """Each alternative once, none that contradicts itself, and the likeliest where there are too many."""
        if len(found) < 2:
            return found
        kept: dict[object, Alternative] = {}
        for item in found:
            met = frozenset((id(guard.test), id(guard.frame), guard.holds) for guard in item.guards)
            if not any((test, frame, not holds) in met for test, frame, holds in met):
                kept.setdefault((v.identity(item.value), item.origin, met, bool(item.doubts)), item)
        if len(kept) > MOST_ALTERNATIVES:
            likely = sorted(kept.values(), key=lambda item: item.is_unlikely)[:MOST_ALTERNATIVES]
            return tuple(item.doubting("too many alternatives to follow") for item in likely)
        return tuple(kept.values())

    def truth(self, test: ast.AST, frame: Frame) -> tuple[bool | None, list[Alternative]]:
        """Whether a condition holds (options at their defaults), and the constants that say so."""
        if test not in frame.truths:
            found = _decide(test, frame)
            if self.is_exhausted or (found[0] is None and self._active):
                return found
            frame.truths[test] = found
        return frame.truths[test]

    def _dispatch(self, node: ast.AST, frame: Frame) -> tuple[Alternative, ...]:
        match node:
            case ast.Constant():
                return (Alternative(v.KnownValue(node.value), origin="literal"),)
            case ast.Name():
                return self.name_at(node.id, node, frame)
            case ast.Attribute():
                held, name = frame.evaluate(node.value), node.attr
                return tuple(
                    one.after(item) for item in held for one in attributes.attribute(item, name, node, frame)
                )
            case ast.Call():
                return calls.evaluate_call(node, frame)
            case ast.IfExp():
                first = [one.under(v.Guard(node.test, True, frame)) for one in frame.evaluate(node.body)]
                other = frame.evaluate(node.orelse)
                return (*first, *(one.under(v.Guard(node.test, False, frame)) for one in other))
            case ast.Tuple() | ast.List() | ast.Set():
                return (Alternative(v.Sequence(tuple(node.elts), frame)),)
            case ast.Dict():
                return operators.dictionary(node, frame)
            case ast.Subscript():
                return operators.subscript(node, frame)
            case ast.Lambda():
                return (Alternative(v.Callable(frame.module.functions[node], parent=frame)),)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return (Alternative(v.Sequence((node.elt,), frame, is_unordered=True)),)
            case ast.DictComp():
                return (Alternative(v.Mapping({"an item": v.Binding(node.value, frame)})),)
            case ast.JoinedStr():
                return (Alternative(v.Unknown(describe(node), is_neutral=True)),)
            case ast.Await() | ast.Starred() | ast.NamedExpr():
                return frame.evaluate(node.value)
            case ast.BinOp():
                return operators.arithmetic(node, frame)
            case ast.BoolOp() | ast.UnaryOp() | ast.Compare():
                return operators.truth_value(node, frame)
        return (Alternative(v.Unknown(describe(node))),)

    def returns(self, frame: Frame) -> tuple[Alternative, ...]:
        """What a call of the frame's function can give back."""
        function = frame.function
        assert function is not None
        if isinstance(function.node, ast.Lambda):
            return frame.evaluate(function.node.body)
        found: list[Alternative] = []
        for node in own_nodes(function.node):
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None:
                guards = guards_of(frame, node)
                is_refused = any(guard.is_ruled_out for guard in guards)
                inner = [item.under(*guards) for item in frame.evaluate(node.value)]
                # An action that a flag keeps out shows where the rule comes from; anything else is not wanted.
                acts = (v.Action, v.Computed)
                found.extend(item for item in inner if not is_refused or isinstance(item.value, acts))
        return tuple(found) or (Alternative(v.Unknown(f"{function.name}()")),)

    # Names, innermost scope first.

    def name_at(self, name: str, use: ast.AST, frame: Frame) -> tuple[Alternative, ...]:
        """The alternatives of a plain name at `use`."""
        found: list[Alternative] = []
        older = True
        alive: list[Assignment] = []
        definitions = definitions_in(frame.scope).get(name, [])
        if definitions:
            alive, older = reaching(frame.module, frame.scope, definitions, use)
            for definition in alive:
                found = [item.under(*self._spared_by(definition, frame, use)) for item in found]
                found.extend(self.defined_by(definition, frame, use))
        if older:
            spared = [guard for definition in alive for guard in self._spared_by(definition, frame, use)]
            found.extend(item.under(*spared) for item in self._outer_name(name, frame, has_own=bool(found)))
        return tuple(found) if not found else operators.with_stores(tuple(found), name, use, frame)

    def _spared_by(self, definition: Assignment, frame: Frame, use: ast.AST) -> list[v.Guard]:
        """The condition under which an older value survives a definition that is made under one condition."""
        tests = conditions(frame.module, definition.statement, frame.scope, use)
        if len(tests) != 1 or place_of(definition.statement) > place_of(use):
            return []
        return [v.Guard(tests[0][0], not tests[0][1], frame)]

    def defined_by(
        self, definition: Assignment, frame: Frame, use: ast.AST | None = None
    ) -> list[Alternative]:
        """What one definition gives a name, under the conditions that decide whether it is made before `use`."""
        guards = guards_of(frame, definition.statement, use)
        node, path = definition.expression, definition.path
        if definition.kind == "definition":
            assert node is not None
            parent = frame if frame.function is not None else None
            if isinstance(node, ast.ClassDef):
                return [Alternative(v.Class(frame.module.classes[node], parent))]
            return [Alternative(v.Callable(frame.module.functions[node], parent=parent))]
        if definition.kind == "import":
            return [item.under(*guards) for item in self._imported(frame.module, definition.name)]
        if definition.kind == "augmented":
            return [item.under(*guards) for item in self._augmented(definition, frame)]
        if definition.kind == "element":
            node, path = operators.looped_over(node, path)
            found = operators.elements(frame.evaluate(node))
        else:
            found = frame.evaluate(node)
        for index in path:
            found = operators.project(found, index)
        return [item.under(*guards) for item in found]

    def _augmented(self, definition: Assignment, frame: Frame) -> tuple[Alternative, ...]:
        """`action += noise` is arithmetic; a number that grows from turn to turn of a loop is not known."""
        statement = definition.statement
        assert isinstance(statement, ast.AugAssign)
        counted = Alternative(v.Unknown(definition.name, is_neutral=True))
        if not frame.evaluate(statement.target):
            return (counted,)
        found = frame.evaluate(operation_of(statement))
        kept = [item for item in found if isinstance(item.value, v.Action | v.Computed | v.Noise | v.Unknown)]
        return tuple(kept) or (counted,)

    def _outer_name(self, name: str, frame: Frame, *, has_own: bool) -> tuple[Alternative, ...]:
        if name in frame.bindings:
            return frame.bindings[name].evaluate(name)
        if frame.function is None:
            return () if has_own else self._imported(frame.module, name)
        if name in ("self", "cls") and frame.receiver is not None:
            return (frame.receiver,)
        rest = frame.function.node.args
        if name in {one.arg for one in (*frame.function.named, rest.vararg, rest.kwarg) if one is not None}:
            return (Alternative(v.Unknown(name)),)
        if has_own:
            return ()  # a local name has no value from outside the function
        if frame.parent is not None and frame.parent.function is not None:
            return self.name_at(name, END, frame.parent)
        return self.global_name(frame.module, name)

    def global_name(self, module: ModuleInfo, name: str) -> tuple[Alternative, ...]:
        """A name of a module's top level, as other code sees it."""
        key = (module.path, name)
        if key in self._active_names:
            return (Alternative(v.Unknown(f"{name}, which modules import from each other")),)
        self._active_names.add(key)
        try:
            definitions = definitions_in(module.tree).get(name, [])
            if not any(definition.kind != "import" for definition in definitions):
                return self._imported(module, name)
            found = self.name_at(name, END, module.frame)
            if name in module.changed_globals:
                found = (*found, Alternative(v.Unknown(f"{name}, changed by `global`")))
            # A constant at the top of a file is a setting of that file.
            return tuple(
                replace(item, origin="option")
                if item.origin == "literal" and isinstance(item.value, v.KnownValue)
                else item
                for item in found
            )
        finally:
            self._active_names.discard(key)

    def _imported(self, module: ModuleInfo, name: str) -> tuple[Alternative, ...]:
        """A name that a module imports; names that nobody defines are unknown."""
        if name in module.imports:
            return self.dotted(module.imports[name], module)
        for key, source in module.imports.items():
            target = self.index.find_module(source, module) if key.startswith("*") else None
            if target is not None and target is not module and name in definitions_in(target.tree):
                return self.global_name(target, name)
        return (Alternative(v.External(name) if name in _BUILTINS else v.Unknown(name)),)

    def dotted(self, dotted: str, importer: ModuleInfo) -> tuple[Alternative, ...]:
        """What an import path means in the file `importer`: something of the repository, or external."""
        found: list[Alternative] = []
        for changed, statement in self.index.replaced.get(dotted, ()):
            mark = Mark(changed.path, statement.lineno, f"{dotted} is replaced here")
            function = changed.functions.get(changed.scope_of(statement))
            frame = Frame(self, changed, function) if function else changed.frame
            found.extend(item.noting(mark) for item in frame.evaluate(statement.value))
        if dotted in self.index.replaced:
            return tuple(found)
        module = self.index.find_module(dotted, importer)
        if module is not None:
            return (Alternative(v.Module(module)),)
        head, _, tail = dotted.rpartition(".")
        parent = self.index.find_module(head, importer) if head else None
        return self.global_name(parent, tail) if parent is not None else (Alternative(v.External(dotted)),)


# Conditions, as far as constants, defaults and settings at their defaults can tell.


def _decide(test: ast.AST, frame: Frame) -> tuple[bool | None, list[Alternative]]:
    """Whether a condition holds (options at their defaults), and the constants that say so."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            known, used = _decide(test.operand, frame)
            return (None if known is None else not known), used
        case ast.BoolOp():
            decisive = isinstance(test.op, ast.Or)
            parts = [_decide(value, frame) for value in test.values]
            for known, used in parts:
                if known is decisive:
                    return known, used
            is_settled = all(known is not None for known, _ in parts)
            return (not decisive if is_settled else None), [item for _, used in parts for item in used]
        case ast.Compare(ops=[sign]):
            left, right = frame.evaluate(test.left), frame.evaluate(test.comparators[0])
            answers = {_compare(sign, one.value, other.value) for one in left for other in right}
            used = [*left, *(item for item in right if item.origin != "literal")]
        case ast.Compare() | ast.BinOp():
            return None, []
        case _:
            used = [*frame.evaluate(test)]
            answers = {_truthiness(item.value) for item in used}
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
    is_drawn = isinstance(noise, v.Noise) and noise.kind == "uniform" and isinstance(noise.node, ast.Call)
    is_ordered = isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
    if not (is_drawn and is_ordered and isinstance(number, int | float)) or 0 < number < 1:
        return None
    return number >= 1 if isinstance(sign, ast.Lt | ast.LtE) == is_left else number <= 0


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
