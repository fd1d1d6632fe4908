"""Which assignments of a name can reach a use of it, and under which conditions.

A structured language needs no control-flow graph for this: the statements of a scope are walked once, and each
branch and turn of a loop hands on what is alive at its end.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass

from gapfloor.audit.interpreter.values import Frame, Guard
from gapfloor.audit.reading.index import (
    ModuleInfo,
    dotted_name,
    kept_on_node,
    last_name,
    own_nodes,
    parent_of,
)

_LOOPS = ast.For | ast.While | ast.AsyncFor
_LEAVING = ast.Return | ast.Raise | ast.Break | ast.Continue
#: Where statements with one target keep it and its value, and what the target then is.
_GIVING = {
    ast.AnnAssign: ("target", "value", "assign"), ast.AugAssign: ("target", "value", "augmented"),
    ast.NamedExpr: ("target", "value", "assign"), ast.withitem: ("optional_vars", "context_expr", "assign"),
    ast.For: ("target", "iter", "element"), ast.AsyncFor: ("target", "iter", "element"),
    ast.comprehension: ("target", "iter", "element"),
}  # fmt: skip
_FILLING = frozenset({"append", "extend", "add", "insert", "appendleft"})


@dataclass(frozen=True, eq=False)
class Assignment:
    """One place where a name gets a value: the expression, and the path of indices into it."""

    name: str
    statement: ast.AST
    expression: ast.AST | None
    path: tuple[int, ...] = ()
    kind: str = "assign"


Alive = frozenset[Assignment | None]


@kept_on_node
def definitions_in(scope: ast.AST) -> dict[str, list[Assignment]]:
    """Every definition of a name in the scope's own body, in the order of the text."""
    found: dict[str, list[Assignment]] = defaultdict(list)
    for node in own_nodes(scope):
        for definition in _definitions_of(node):
            found[definition.name].append(definition)
    return found


def _definitions_of(node: ast.AST) -> list[Assignment]:
    if isinstance(node, ast.Assign):
        return [item for target in node.targets for item in _unpack(target, node, node.value, ())]
    if type(node) in _GIVING:
        target, value, kind = _GIVING[type(node)]
        return _unpack(getattr(node, target), node, getattr(node, value), (), kind)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [Assignment(node.name, node, node, kind="definition")]
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [(alias.asname or alias.name).split(".")[0] for alias in node.names]
        return [Assignment(name, node, None, kind="import") for name in names]
    return []


def _unpack(
    target: ast.AST | None,
    statement: ast.AST,
    expression: ast.AST | None,
    path: tuple[int, ...],
    kind: str = "assign",
) -> list[Assignment]:
    if expression is None:
        return []
    if isinstance(target, ast.Name):
        return [Assignment(target.id, statement, expression, path, kind)]
    if isinstance(target, ast.Tuple | ast.List):
        found = []
        starred = next((i for i, item in enumerate(target.elts) if isinstance(item, ast.Starred)), None)
        for position, item in enumerate(target.elts):
            if isinstance(item, ast.Starred):
                continue
            index = position - len(target.elts) if starred is not None and position > starred else position
            found.extend(_unpack(item, statement, expression, (*path, index), kind))
        return found
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return [Assignment(f"self.{target.attr}", statement, expression, path, kind)]
    return []


@kept_on_node
def operation_of(statement: ast.AugAssign) -> ast.BinOp:
    """`a += b` as the operation `a + b`."""
    return ast.copy_location(ast.BinOp(statement.target, statement.op, statement.value), statement)


@kept_on_node
def stores_in(scope: ast.AST) -> dict[str, list[tuple[ast.AST, ast.expr | None, ast.expr]]]:
    """The statements of a scope that put something into a name or attribute: (statement, key, what is put in)."""
    found: dict[str, list[tuple[ast.AST, ast.expr | None, ast.expr]]] = defaultdict(list)
    for node in own_nodes(scope):
        if isinstance(node, ast.Assign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Subscript):
                    value = node.value if isinstance(node, ast.Assign) else operation_of(node)
                    found[dotted_name(target.value)].append((node, target.slice, value))
        elif isinstance(node, ast.Call) and last_name(node.func) in _FILLING and node.args:
            holder = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            found[dotted_name(holder)].append((node, None, node.args[-1]))
    return found


def branch_path(module: ModuleInfo, node: ast.AST, scope: ast.AST) -> list[tuple[ast.AST, str]]:
    """The compound statements around `node` inside `scope`, outermost first, each with the branch it is in."""
    return _around(module, node, scope)[0]


def _around(
    module: ModuleInfo, node: ast.AST, scope: ast.AST
) -> tuple[list[tuple[ast.AST, str]], list[tuple[ast.expr, bool]]]:
    """The branches around a node, and the tests before it that would have left its block: `if done: return`."""
    key = (node, scope)
    if key not in module.known:
        path: list[tuple[ast.AST, str]] = []
        survived: list[tuple[ast.expr, bool]] = []
        module.known[key] = path, survived
        while node is not scope and (parent := parent_of(node)) is not None:
            for branch in ("body", "orelse", "handlers", "finalbody"):
                held = getattr(parent, branch, None)
                if isinstance(held, list) and node in held:
                    before = [
                        one for one in held[: held.index(node)] if isinstance(one, ast.If) and not one.orelse
                    ]
                    survived += [(one.test, False) for one in before if isinstance(one.body[-1], _LEAVING)]
                    if isinstance(parent, ast.If | _LOOPS | ast.Try):
                        path.insert(0, (parent, branch))
                elif held is node and isinstance(parent, ast.IfExp):
                    path.insert(0, (parent, branch))
            node = parent
    found: tuple[list[tuple[ast.AST, str]], list[tuple[ast.expr, bool]]] = module.known[key]
    return found


class _Flow:
    """Which definitions of one name are alive before each statement of a scope; None is the value from before it."""

    def __init__(self, scope: ast.AST, definitions: list[Assignment]) -> None:
        self._made: dict[ast.AST, Alive] = defaultdict(frozenset)
        self._matters: set[ast.AST] = set()
        self._breaks: Alive = frozenset()
        self._again: Alive = frozenset()
        self._returned: Alive = frozenset()
        self.before: dict[ast.AST, Alive] = {}
        for definition in definitions:
            statement = definition.statement
            while not isinstance(statement, ast.stmt):
                statement = parent_of(statement) or scope
            self._made[statement] |= {definition}
        waiting: list[ast.AST | None] = [
            *self._made,
            *(node for node in own_nodes(scope) if isinstance(node, _LEAVING)),
        ]
        while waiting:
            node = waiting.pop()
            if node is not None and node is not scope and node not in self._matters:
                self._matters.add(node)
                waiting.append(parent_of(node))
        self.after = self._run(getattr(scope, "body", []), frozenset({None})) | self._returned

    def _run(self, block: list[ast.stmt], state: Alive) -> Alive:
        for statement in block:
            self.before[statement] = self.before.get(statement, frozenset()) | state
            if statement in self._matters:
                state = self._past(statement, state)
        return state

    def _past(self, statement: ast.stmt, state: Alive) -> Alive:
        """What is alive after a statement, given what is alive before it; nothing where it leaves the block."""
        head = self._made.get(statement) or state
        match statement:
            case ast.If():
                return self._run(statement.body, head) | self._run(statement.orelse, head)
            case ast.For() | ast.While() | ast.AsyncFor():
                return self._past_loop(statement, state)
            case ast.With() | ast.AsyncWith():
                return self._run(statement.body, head)
            case ast.Try():
                tried = self._run(statement.body, state)
                caught = [self._run(handler.body, tried or state) for handler in statement.handlers]
                return self._run(statement.finalbody, self._run(statement.orelse, tried).union(*caught))
            case ast.Match():
                return state.union(*(self._run(case.body, state) for case in statement.cases))
            case ast.Return() | ast.Raise():
                self._returned |= state if isinstance(statement, ast.Return) else frozenset()
                return frozenset()
            case ast.Break():
                self._breaks |= state
                return frozenset()
            case ast.Continue():
                self._again |= state
                return frozenset()
        return head

    def _past_loop(self, loop: ast.For | ast.While | ast.AsyncFor, state: Alive) -> Alive:
        outer = self._breaks, self._again
        self._breaks = self._again = frozenset()
        for _ in range(2):  # what the first turn defines is alive in the second
            turn = state | self._again
            self._again |= self._run(loop.body, self._made.get(loop) or turn)
        is_endless = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and loop.test.value
        after = self._run(loop.orelse, frozenset() if is_endless else state | self._again) | self._breaks
        self._breaks, self._again = outer
        return after


def reaching(
    module: ModuleInfo, scope: ast.AST, definitions: list[Assignment], use: ast.AST
) -> tuple[list[Assignment], bool]:
    """The definitions that can reach `use`, and whether an older value (a parameter) can reach it too."""
    others = [one for one in definitions if not isinstance(one.statement, ast.comprehension)]
    for one in definitions:
        if one not in others and _contains(parent_of(one.statement), use):
            return [one], False
    if not others:
        return [], True
    key = (scope, others[0].name)
    if key not in module.known:
        module.known[key] = _Flow(scope, others)
    flow = module.known[key]
    node: ast.AST | None = use
    while node is not None and node not in flow.before:
        node = parent_of(node)
    alive = flow.before[node] if node is not None else flow.after
    found = [one for one in others if one in alive]
    return (found, None in alive) if alive else (others, True)


def _contains(outer: ast.AST | None, inner: ast.AST) -> bool:
    node: ast.AST | None = inner
    while node is not None and node is not outer:
        node = parent_of(node)
    return node is not None


def conditions(
    module: ModuleInfo, node: ast.AST, scope: ast.AST, use: ast.AST | None
) -> list[tuple[ast.expr, bool]]:
    """The tests that decide whether `node` runs, without those that `use` shares with it."""
    path = branch_path(module, node, scope)
    shared = {(id(item), branch) for item, branch in branch_path(module, use, scope)} if path and use else ()
    return [
        *(
            (item.test, branch == "body")
            for item, branch in path
            if isinstance(item, ast.If | ast.IfExp) and (id(item), branch) not in shared
        ),
        *_around(module, node, scope)[1],
    ]


def guards_of(frame: Frame, node: ast.AST, use: ast.AST | None = None) -> list[Guard]:
    """The conditions under which `node` runs inside its frame, without those that `use` shares with it."""
    return [Guard(test, holds, frame) for test, holds in conditions(frame.module, node, frame.scope, use)]


def never_runs(frame: Frame, node: ast.AST) -> bool:
    """Whether a condition around `node` cannot hold."""
    return any(guard.is_ruled_out for guard in guards_of(frame, node))


def loops_around(frame: Frame, node: ast.AST) -> list[ast.AST]:
    """The loops around `node` in its frame, outermost first."""
    path = branch_path(frame.module, node, frame.scope)
    return [one for one, branch in path if branch == "body" and isinstance(one, _LOOPS)]
