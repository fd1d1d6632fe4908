"""Which assignments of a name can reach a use of it, and under which conditions.

A structured language needs no control-flow graph for this: an assignment is killed by a later one that always
runs before the use, and two branches of one `if` exclude each other.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass

from gapfloor.audit.reading.index import ModuleInfo, dotted_name, last_name, own_nodes

_LOOPS = ast.For | ast.While | ast.AsyncFor
_FILLING = frozenset({"append", "extend", "add", "insert", "appendleft"})


@dataclass(frozen=True, eq=False)
class Assignment:
    """One place where a name gets a value: the expression, and the path of indices into it."""

    name: str
    statement: ast.AST
    expression: ast.AST | None
    path: tuple[int, ...] = ()
    kind: str = "assign"


def definitions_in(module: ModuleInfo, scope: ast.AST) -> dict[str, list[Assignment]]:
    """Every definition of a name in the scope's own body, in the order of the text."""
    found: dict[str, list[Assignment]] = defaultdict(list)
    for node in own_nodes(scope):
        for definition in _definitions_of(node):
            found[definition.name].append(definition)
    return found


def _definitions_of(node: ast.AST) -> list[Assignment]:
    if isinstance(node, ast.Assign):
        return [item for target in node.targets for item in _unpack(target, node, node.value, ())]
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return _unpack(node.target, node, node.value, ())
    if isinstance(node, ast.AugAssign):
        return _unpack(node.target, node, node.value, (), kind="augmented")
    if isinstance(node, ast.NamedExpr):
        return _unpack(node.target, node, node.value, ())
    if isinstance(node, ast.For | ast.AsyncFor):
        return _unpack(node.target, node, node.iter, (), kind="element")
    if isinstance(node, ast.comprehension):
        return _unpack(node.target, node, node.iter, (), kind="element")
    if isinstance(node, ast.withitem) and node.optional_vars is not None:
        return _unpack(node.optional_vars, node, node.context_expr, ())
    if isinstance(node, ast.Call):
        return _registered(node)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [Assignment(node.name, node, node, kind="definition")]
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [(alias.asname or alias.name).split(".")[0] for alias in node.names]
        return [Assignment(name, node, None, kind="import") for name in names]
    return []


def _registered(node: ast.Call) -> list[Assignment]:
    """`self.register_buffer("scale", tensor)` and `setattr(self, "scale", value)` assign an attribute."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    arguments = node.args[1:] if name == "setattr" else node.args
    if name not in ("register_buffer", "register_parameter", "setattr") or len(arguments) < 2:
        return []
    key = arguments[0]
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return []
    return [Assignment(f"self.{key.value}", node, arguments[1])]


def _unpack(
    target: ast.AST, statement: ast.AST, expression: ast.AST, path: tuple[int, ...], kind: str = "assign"
) -> list[Assignment]:
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


def operation_of(statement: ast.AugAssign) -> ast.BinOp:
    """`a += b` as the operation `a + b`."""
    kept: ast.BinOp | None = getattr(statement, "_operation", None)
    if kept is None:
        kept = ast.copy_location(ast.BinOp(statement.target, statement.op, statement.value), statement)
        statement._operation = kept  # type: ignore[attr-defined]
    return kept


def stores_in(scope: ast.AST) -> dict[str, list[tuple[ast.AST, ast.expr | None, ast.expr]]]:
    """The statements of a scope that put something into a name or attribute: (statement, key, what is put in)."""
    kept: dict[str, list[tuple[ast.AST, ast.expr | None, ast.expr]]] | None = getattr(scope, "_stores", None)
    if kept is None:
        kept = defaultdict(list)
        for node in own_nodes(scope):
            if isinstance(node, ast.Assign | ast.AugAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Subscript):
                        value = node.value if isinstance(node, ast.Assign) else operation_of(node)
                        kept[dotted_name(target.value)].append((node, target.slice, value))
            elif isinstance(node, ast.Call) and last_name(node.func) in _FILLING and node.args:
                holder = node.func.value if isinstance(node.func, ast.Attribute) else node.func
                kept[dotted_name(holder)].append((node, None, node.args[-1]))
        scope._stores = kept  # type: ignore[attr-defined]
    return kept


def branch_path(module: ModuleInfo, node: ast.AST, scope: ast.AST) -> list[tuple[ast.AST, str]]:
    """The compound statements around `node` inside `scope`, outermost first, each with the branch it is in."""
    kept = module.branches.get((node, scope))
    if kept is None:
        kept = module.branches[node, scope] = _branch_path(module, node, scope)
    return kept


def _branch_path(module: ModuleInfo, node: ast.AST, scope: ast.AST) -> list[tuple[ast.AST, str]]:
    path: list[tuple[ast.AST, str]] = []
    while node is not scope and node in module.parents:
        parent = module.parents[node]
        branch = ""
        if isinstance(parent, ast.If | _LOOPS | ast.Try):
            parts = ("body", "orelse", "handlers", "finalbody")
            branch = next((one for one in parts if any(kid is node for kid in getattr(parent, one, ()))), "")
        elif isinstance(parent, ast.IfExp):
            branch = "body" if node is parent.body else "orelse" if node is parent.orelse else ""
        if branch:
            path.append((parent, branch))
        node = parent
    return path[::-1]


def reaching(
    module: ModuleInfo, scope: ast.AST, definitions: list[Assignment], use: ast.AST
) -> tuple[list[Assignment], bool]:
    """The definitions that can reach `use`, and whether an older value (a parameter) can reach it too."""
    use_path = branch_path(module, use, scope)
    use_order = module.order.get(use, len(module.order))  # a use outside the text comes after everything
    use_loops = {id(node) for node, branch in use_path if isinstance(node, _LOOPS)}
    alive: list[Assignment] = []
    older_reaches = True
    completed: dict[int, set[str]] = defaultdict(set)
    later: list[Assignment] = []
    for definition in definitions:
        path = branch_path(module, definition.statement, scope)
        if definition.kind == "element" and isinstance(definition.statement, _LOOPS):
            path = [*path, (definition.statement, "body")]
        if _contains(module, definition.statement, use) and definition.kind != "element":
            # A statement's own right-hand side sees the values from before it, or from the last turn of a loop.
            if any(id(node) in use_loops for node, _ in path):
                later.append(definition)
            continue
        if _excludes(path, use_path):
            continue
        if module.order[definition.statement] > use_order:
            if any(id(node) in use_loops for node, _ in path if isinstance(node, _LOOPS)):
                later.append(definition)
            continue
        if _always_before(path, use_path):
            alive, older_reaches = [], False
            completed.clear()
            later = []
        alive.append(definition)
        _note_branches(path, use_path, completed)
        if any(len(branches) == 2 for branches in completed.values()):
            older_reaches, alive = _drop_older(module, scope, completed, alive, older_reaches)
    killed_in_loop = bool(alive) and any(
        all(loop in {id(n) for n, _ in branch_path(module, item.statement, scope)} for loop in use_loops)
        and not older_reaches
        for item in alive
    )
    return alive + ([] if killed_in_loop else later), older_reaches


def _contains(module: ModuleInfo, outer: ast.AST, inner: ast.AST) -> bool:
    node: ast.AST | None = inner
    while node is not None:
        if node is outer:
            return True
        node = module.parents.get(node)
    return False


def _excludes(first: list[tuple[ast.AST, str]], second: list[tuple[ast.AST, str]]) -> bool:
    branches = {id(node): branch for node, branch in second if isinstance(node, ast.If | ast.IfExp)}
    return any(
        branches.get(id(node), branch) != branch
        for node, branch in first
        if isinstance(node, ast.If | ast.IfExp)
    )


def _always_before(path: list[tuple[ast.AST, str]], use_path: list[tuple[ast.AST, str]]) -> bool:
    around = {(id(node), branch) for node, branch in use_path}
    return all(
        (id(node), branch) in around or (isinstance(node, ast.Try) and branch in ("body", "finalbody"))
        for node, branch in path
    )


def _note_branches(
    path: list[tuple[ast.AST, str]], use_path: list[tuple[ast.AST, str]], completed: dict[int, set[str]]
) -> None:
    """A branch is complete when it defines the name itself, or by an inner `if` that is complete."""
    around = {id(node) for node, _ in use_path}
    outside = [(node, branch) for node, branch in path if id(node) not in around]
    if not outside or not all(isinstance(node, ast.If | ast.Try) for node, _ in outside):
        return
    for node, branch in reversed(outside):
        if isinstance(node, ast.Try):
            if branch == "body":
                continue
            return
        completed[id(node)].add(branch)
        for other in ("body", "orelse"):
            if _leaves(getattr(node, other)):
                completed[id(node)].add(other)
        if len(completed[id(node)]) < 2:
            return


def _drop_older(
    module: ModuleInfo,
    scope: ast.AST,
    completed: dict[int, set[str]],
    alive: list[Assignment],
    older_reaches: bool,
) -> tuple[bool, list[Assignment]]:
    """Only an `if` that itself always runs, and defines the name either way, replaces what was there."""
    whole = {key for key, branches in completed.items() if len(branches) == 2}
    inside = [item for item in alive if _is_top(module, scope, item, whole)]
    return (False, inside) if inside else (older_reaches, alive)


def _is_top(module: ModuleInfo, scope: ast.AST, item: Assignment, whole: set[int]) -> bool:
    path = branch_path(module, item.statement, scope)
    first = next((i for i, (node, _) in enumerate(path) if id(node) in whole), None)
    return first is not None and all(not isinstance(node, ast.If) for node, _ in path[:first])


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
        *_survived(module, node, scope),
    ]


def _survived(module: ModuleInfo, node: ast.AST, scope: ast.AST) -> list[tuple[ast.expr, bool]]:
    """The tests of statements before `node` that would have left its block: `if done: return`."""
    kept = module.survived.get((node, scope))
    if kept is None:
        kept = module.survived[node, scope] = []
        current = node
        while current is not scope and current in module.parents:
            parent = module.parents[current]
            for block in ("body", "orelse", "finalbody"):
                statements = getattr(parent, block, None)
                if isinstance(statements, list) and any(item is current for item in statements):
                    before = statements[: next(i for i, item in enumerate(statements) if item is current)]
                    leaving = [one for one in before if isinstance(one, ast.If) and not one.orelse]
                    kept.extend((one.test, False) for one in leaving if _leaves(one.body))
            current = parent
    return kept


def _leaves(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
