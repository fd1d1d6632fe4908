"""The state of an object at the moment an action is chosen: modes, flags and setters.

`model.eval()`, `agent.eval_mode = True`, `agent.set_test()` and `with agent.evaluation():` change an attribute before
the acting call. From the reading of the attribute the chain of calls is walked outwards, and the nearest earlier
change of the same object decides. A change under a condition, or later in the same loop, keeps both values.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.values import (
    Alternative,
    Callable,
    Frame,
    Guard,
    Instance,
    KnownValue,
    Mark,
    Unknown,
    describe,
)
from gapfloor.audit.reading.index import FunctionInfo, last_name, own_nodes

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

_LOOPS = ast.For | ast.While | ast.AsyncFor
_MODE = "training"
_DEEPEST = 3
_DEEPEST_FRAME = 14


@dataclass(frozen=True, eq=False)
class _Change:
    """One change of an attribute: what it becomes, and whether the change surely happens."""

    values: tuple[Alternative, ...]
    is_certain: bool = True


class StateModel:
    """Finds the last change of an attribute before it is read."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._changing: dict[str, set[str]] = {}
        self._words: dict[str, set[str]] = {}
        self._changers: dict[str, set[str]] = defaultdict(set)
        """Attribute -> names of the functions that change it themselves."""
        self._callers: dict[str, set[str]] = defaultdict(set)
        """Name of a function -> names of the functions that call it."""
        for module in evaluator.index.modules.values():
            for function in module.functions.values():
                for attribute in _changed_by(function):
                    self._changers[attribute].add(function.name)
                if function.name not in ("__init__", "main", "run"):
                    for call in function.calls:
                        self._callers[last_name(call.func)].add(function.name)
        self._changeable = {*evaluator.index.set_from_outside, *self._changers}
        self._active: set[tuple[int, int, str]] = set()
        self._depth = 0

    def value(
        self, item: Alternative, name: str, node: ast.AST, frame: Frame
    ) -> tuple[Alternative, ...] | None:
        """What `item.name` is at `node`, if an earlier change can be seen; None if there is none."""
        if name not in self._changeable and name != _MODE:
            return None
        key = (id(frame), id(node), name)
        if key in self._active:
            return None
        self._active.add(key)
        try:
            return self._value(item, name, node, frame)
        finally:
            self._active.discard(key)

    def _value(
        self, item: Alternative, name: str, node: ast.AST, frame: Frame
    ) -> tuple[Alternative, ...] | None:
        found: list[Alternative] = []
        here: Frame | None = frame
        inner: ast.AST | None = node
        while here is not None and inner is not None:
            for change in self._before(here, inner, item, name):
                found.extend(change.values)
                if change.is_certain:
                    return tuple(found)
            inner, here = here.call, here.caller
        if not found:
            return None
        return (*found, Alternative(Unknown(f"{name}, which is changed under a condition")))

    def _before(self, frame: Frame, node: ast.AST, item: Alternative, name: str) -> list[_Change]:
        """Changes in a frame before `node`, the nearest first."""
        found: list[_Change] = []
        current = node
        parents = frame.module.parents
        while current is not frame.scope and current in parents:
            parent = parents[current]
            if isinstance(parent, ast.With | ast.AsyncWith) and current in parent.body:
                for entered in reversed(parent.items):
                    found.extend(self._of_call(entered.context_expr, frame, item, name, node))
            for block in ("body", "orelse", "finalbody"):
                statements = getattr(parent, block, None)
                if not isinstance(statements, list) or current not in statements:
                    continue
                position = statements.index(current)
                for statement in reversed(statements[:position]):
                    found.extend(self._in_statement(statement, frame, item, name, node))
                    if found and found[-1].is_certain:
                        return found
                if isinstance(parent, _LOOPS):
                    for statement in reversed(statements[position + 1 :]):
                        later = self._in_statement(statement, frame, item, name, node)
                        found.extend(_Change(change.values, is_certain=False) for change in later)
            current = parent
        return found

    def _in_statement(
        self, statement: ast.stmt, frame: Frame, item: Alternative, name: str, node: ast.AST
    ) -> list[_Change]:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return []
        if _words_of(statement).isdisjoint(self._words_changing(name)):
            return []
        if isinstance(statement, ast.If):
            return self._in_branches(statement, frame, item, name, node)
        if isinstance(statement, ast.With | ast.AsyncWith):
            # What a context manager changes it puts back at its end; its body runs for sure.
            return self._in_block(statement.body, frame, item, name, node)
        if isinstance(statement, _LOOPS):
            return self._in_block(statement.body, frame, item, name, node)
        if isinstance(statement, ast.Try):
            return self._in_block([*statement.body, *statement.finalbody], frame, item, name, node)
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                is_named = getattr(target, "attr", None) == name
                if (
                    isinstance(target, ast.Attribute)
                    and is_named
                    and self._is_same(target.value, frame, item, node)
                ):
                    return [_Change(self._assigned(statement.value, frame, describe(target)))]
                for index, part in enumerate(target.elts if isinstance(target, ast.Tuple) else ()):
                    is_part = isinstance(part, ast.Attribute) and part.attr == name
                    if is_part and self._is_same(part.value, frame, item, node):  # type: ignore[attr-defined]
                        return [_Change(self._unpacked(statement.value, index, frame, describe(part)))]
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Attribute):
            target = statement.target
            if target.attr == name and self._is_same(target.value, frame, item, node):
                return [_Change((Alternative(Unknown(f"{describe(target)}, which is counted")),))]
        found: list[_Change] = []
        for inner in reversed(own_nodes(statement)):
            if isinstance(inner, ast.Call):
                found.extend(self._of_call(inner, frame, item, name, node))
        return found

    def _in_block(
        self, body: list[ast.stmt], frame: Frame, item: Alternative, name: str, node: ast.AST
    ) -> list[_Change]:
        found: list[_Change] = []
        for statement in reversed(body):
            found.extend(self._in_statement(statement, frame, item, name, node))
            if found and found[-1].is_certain:
                break
        return found

    def _in_branches(
        self, statement: ast.If, frame: Frame, item: Alternative, name: str, node: ast.AST
    ) -> list[_Change]:
        found: list[_Change] = []
        sides = []
        for body, holds in ((statement.body, True), (statement.orelse, False)):
            changes = self._in_block(body, frame, item, name, node)
            sides.append(bool(changes) and changes[-1].is_certain)
            guard = Guard(statement.test, holds, frame)
            for change in changes:
                found.append(_Change(tuple(one.under(guard) for one in change.values), is_certain=False))
        if found and all(sides):
            found[-1] = _Change(found[-1].values)
        if found and not all(sides):
            known, used = self.evaluator.truth(statement.test, frame)
            if known is not None and all(one.origin != "option" for one in used):
                return [_Change(change.values) for change in found] if sides[0 if known else 1] else []
        return found

    def _of_call(
        self, expression: ast.AST, frame: Frame, item: Alternative, name: str, node: ast.AST
    ) -> list[_Change]:
        """What a call changes: a module's mode, or what a function of the repository assigns."""
        if not isinstance(expression, ast.Call):
            return []
        called = last_name(expression.func)
        is_mode = name == _MODE and called in ("eval", "train") and len(expression.args) <= 1
        if is_mode and isinstance(expression.func, ast.Attribute):
            if self._is_same(expression.func.value, frame, item, node):
                return [_Change(self._mode(expression, called, frame))]
            if not isinstance(expression.func.value, ast.Name | ast.Attribute):
                return []
        if self._depth >= _DEEPEST or called not in self._functions_changing(name):
            return []
        for target in self.evaluator.evaluate(expression.func, frame):
            if isinstance(target.value, Callable) and frame.depth < _DEEPEST_FRAME:
                inner = self.evaluator.bound_frame(
                    target.value.function, expression, frame, target.value.receiver, target.value.parent
                )
                changes = self._inside(inner, item, name, node)
                if changes:
                    return changes
        return []

    def _inside(self, frame: Frame, item: Alternative, name: str, node: ast.AST) -> list[_Change]:
        function = frame.function
        assert function is not None
        if isinstance(function.node, ast.Lambda):
            return []
        self._depth += 1
        try:
            return self._in_block(_until_yield(function.node.body), frame, item, name, node)
        finally:
            self._depth -= 1

    def _mode(self, call: ast.Call, called: str, frame: Frame) -> tuple[Alternative, ...]:
        mark = Mark(frame.module.path, call.lineno, f"{describe(call)} sets the mode")
        if called == "train" and (call.args or call.keywords):
            given = call.args[0] if call.args else call.keywords[0].value
            return tuple(item.noting(mark) for item in self._assigned(given, frame, describe(call)))
        return (Alternative(KnownValue(called == "train"), marks=(mark,), origin="argument"),)

    def _assigned(self, expression: ast.expr, frame: Frame, what: str) -> tuple[Alternative, ...]:
        mark = Mark(frame.module.path, expression.lineno, f"{what} is set to {describe(expression)}")
        return tuple(
            item.noting(mark).from_origin("argument" if item.origin == "literal" else item.origin)
            for item in self.evaluator.evaluate(expression, frame)
        )

    def _unpacked(self, expression: ast.expr, index: int, frame: Frame, what: str) -> tuple[Alternative, ...]:
        """What one name of `self.state, self.action = act(...)` gets."""
        mark = Mark(frame.module.path, expression.lineno, f"{what} is set by {describe(expression)}")
        found = self.evaluator.project(self.evaluator.evaluate(expression, frame), index)
        return tuple(item.noting(mark) for item in found)

    def _is_same(self, expression: ast.expr, frame: Frame, item: Alternative, node: ast.AST) -> bool:
        """Whether an expression names the object whose attribute is read, or a module that contains it."""
        mine = item.value
        assert isinstance(mine, Instance)
        found = self.evaluator.evaluate(expression, frame)
        for other in found:
            if not isinstance(other.value, Instance):
                continue
            theirs = other.value
            related = theirs.info in self.evaluator.objects.mro(mine.info)
            related = related or mine.info in self.evaluator.objects.mro(theirs.info)
            if related and (theirs.made_at is mine.made_at or None in (theirs.made_at, mine.made_at)):
                return True
            if theirs.init is not None and mine.frame is not None and theirs.init in mine.frame.chain():
                return self.evaluator.objects.is_network(theirs.info)
        if any(isinstance(other.value, Instance) for other in found):
            return False
        return self._is_same_text(expression, frame, node)

    def _is_same_text(self, expression: ast.expr, frame: Frame, node: ast.AST) -> bool:
        """An object of unknown kind is the same when the acting call in that frame names it by the same words."""
        return any(
            isinstance(inner, ast.Call)
            and ast.dump(inner.func.value if isinstance(inner.func, ast.Attribute) else inner.func)
            == ast.dump(expression)
            and last_name(inner.func) not in ("eval", "train")
            for inner in own_nodes(frame.scope)
        )

    def _words_changing(self, name: str) -> set[str]:
        """The words through which a statement can change the attribute: its name, or a function that changes it."""
        if name not in self._words:
            modes = {"eval", "train"} if name == _MODE else set()
            self._words[name] = {name, *modes, *self._functions_changing(name)}
        return self._words[name]

    def _functions_changing(self, name: str) -> set[str]:
        """Names of functions that change an attribute of that name, themselves or through others."""
        if name not in self._changing:
            names = set(self._changers.get(name, ()))
            for _ in range(_DEEPEST - 1):
                names |= {caller for called in names for caller in self._callers.get(called, ())}
            self._changing[name] = names
        return self._changing[name]


def _words_of(statement: ast.stmt) -> frozenset[str]:
    """The attributes that a statement assigns and the functions that it calls, those of inner statements included."""
    kept: frozenset[str] | None = getattr(statement, "_words", None)
    if kept is None:
        stored = {
            node.attr
            for node in own_nodes(statement)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        called = {last_name(node.func) for node in own_nodes(statement) if isinstance(node, ast.Call)}
        kept = frozenset(stored | called)
        statement._words = kept  # type: ignore[attr-defined]
    return kept


def _changed_by(function: FunctionInfo) -> set[str]:
    """The attributes that a function changes itself; a constructor makes them, it does not change them."""
    if function.name == "__init__":
        return set()
    found: set[str] = set()
    for node in own_nodes(function.node):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) <= 1:
            found |= {_MODE} if node.func.attr in ("eval", "train") else set()
    return found


def _until_yield(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a context manager before it hands over; all statements of other functions."""
    found: list[ast.stmt] = []
    for statement in body:
        if any(isinstance(node, ast.Yield) for node in own_nodes(statement)):
            if isinstance(statement, ast.Try | ast.With):
                found.extend(_until_yield(statement.body))
            break
        found.append(statement)
    return found
