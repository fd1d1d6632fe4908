"""Where the return of stepped episodes is averaged and reported.

From the results of a step, names are followed forward: into lists and deques, out of the function, up the chain of
calls, until a mean is taken of them.
"""

from __future__ import annotations

import ast
import re

from gapfloor.audit.interpreter.values import Frame, Mark
from gapfloor.audit.reading.index import last_name, own_nodes, plain_names_in

_MEAN = re.compile(r"mean|average|median|process_ep|summar", re.IGNORECASE)
_COLLECT = frozenset({"append", "extend", "appendleft", "add", "insert", "put"})


def report_marks(frame: Frame, step: ast.Call) -> list[Mark]:
    """The lines where a mean is taken of what the step gave back, innermost frame first."""
    call: ast.AST = step
    is_step = True
    found: list[Mark] = []
    for here in reversed(frame.chain()):
        names = _followed(here, call, is_step=is_step)
        for node in own_nodes(here.scope):
            if isinstance(node, ast.Call) and _MEAN.search(last_name(node.func)) and _mentions(node, names):
                found.append(Mark(here.module.path, node.lineno, "return averaged and reported"))
        if found or here.call is None or not _returns_any(here, names):
            break
        call, is_step = here.call, False
    return list(dict.fromkeys(found))[:4]


def averages_over_updates(home: Frame, loop: ast.AST, frame: Frame, step: ast.Call) -> bool:
    """Whether results of evaluations inside `loop` are pooled in a list that outlives it, and a mean taken of that."""
    chain = frame.chain()
    call = step if frame is home else chain[chain.index(home) + 1].call
    if call is None:
        return False
    inside = {id(node) for node in ast.walk(loop)}
    followed = _followed(home, call, is_step=False)
    collected: set[str] = set()
    for node in own_nodes(home.scope):
        if id(node) in inside and isinstance(node, ast.Call) and last_name(node.func) in ("extend", "append"):
            holds = any(item is call for argument in node.args for item in ast.walk(argument))
            named = any(_mentions(argument, followed) for argument in node.args)
            if (
                (holds or named)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
            ):
                collected.add(node.func.value.id)
    made_inside = {
        target.id
        for node in own_nodes(home.scope)
        if id(node) in inside and isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    pooled = collected - made_inside
    return any(
        isinstance(node, ast.Call) and _MEAN.search(last_name(node.func)) and _mentions(node, pooled)
        for node in own_nodes(home.scope)
    )


def _followed(frame: Frame, call: ast.AST, *, is_step: bool) -> set[str]:
    statement = frame.module.parents.get(call)
    while statement is not None and not isinstance(statement, ast.stmt):
        statement = frame.module.parents.get(statement)
    names: set[str] = set()
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Tuple | ast.List):
                # Of a step's results the information comes last; of a rollout's, the episodes do.
                last = target.elts[-1]
                names |= {last.id} if isinstance(last, ast.Name) else set()
            elif isinstance(target, ast.Name):
                names.add(target.id)
    changed = bool(names)
    while changed:
        before = len(names)
        for node in _carriers(frame.scope):
            names |= _spread(node, names)
        changed = len(names) > before
    return names


def _carriers(scope: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a scope through which a followed value can get another name."""
    kept: tuple[ast.AST, ...] | None = getattr(scope, "_carriers", None)
    if kept is None:
        kept = tuple(node for node in own_nodes(scope) if isinstance(node, ast.For | ast.Assign | ast.Call))
        scope._carriers = kept  # type: ignore[attr-defined]
    return kept


def _spread(node: ast.AST, names: set[str]) -> set[str]:
    if isinstance(node, ast.For) and _mentions(node.iter, names):
        return {item.id for item in ast.walk(node.target) if isinstance(item, ast.Name)}
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and _is_view(node.value, names):
        return {item.id for item in ast.walk(node.targets[0]) if isinstance(item, ast.Name)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COLLECT:
        receiver = node.func.value
        if isinstance(receiver, ast.Name) and any(_mentions(argument, names) for argument in node.args):
            return {receiver.id}
    return set()


def _is_view(value: ast.expr, names: set[str]) -> bool:
    """A part of what is followed: a name, an element, `x.get("episode")`, the other name of a buffer."""
    while isinstance(value, ast.Subscript | ast.Attribute) or (
        isinstance(value, ast.Call) and last_name(value.func) in ("get", "copy", "item", "items", "values")
    ):
        value = value.func if isinstance(value, ast.Call) else value.value
    if isinstance(value, ast.IfExp):
        return _is_view(value.body, names) or _is_view(value.orelse, names)
    return isinstance(value, ast.Name) and value.id in names


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return not plain_names_in(node).isdisjoint(names)


def _returns_any(frame: Frame, names: set[str]) -> bool:
    return any(
        isinstance(node, ast.Return) and node.value is not None and _mentions(node.value, names)
        for node in own_nodes(frame.scope)
    )
