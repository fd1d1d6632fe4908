"""Conditions on the rank of a process: a worker that is chosen by its rank plays other levels than the rest."""

from __future__ import annotations

import ast

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.values import Callable, Frame, Guard, Mark, describe
from gapfloor.audit.reading.index import names_in

_RANK = frozenset(
    {"Get_rank", "get_rank", "rank", "local_rank", "world_rank", "process_index", "worker_index"}
)


def depends_on_rank(evaluator: Evaluator, test: ast.AST, frame: Frame, depth: int) -> bool:
    """Whether a condition comes from the rank of the process, through names, arguments and functions."""
    if names_in(test) & _RANK:
        return True
    if depth == 0:
        return False
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            binding = frame.bindings.get(node.id)
            sources: list[tuple[ast.AST | None, Frame | None]] = []
            if binding is not None:
                sources.append((binding.expression, binding.frame))
            sources += [
                (definition.expression, frame)
                for definition in evaluator.definitions(frame.module, frame.scope).get(node.id, [])
                if definition.kind == "assign"
            ]
            for expression, home in sources:
                if (
                    expression is not None
                    and home is not None
                    and depends_on_rank(evaluator, expression, home, depth - 1)
                ):
                    return True
        elif isinstance(node, ast.Call):
            for target in evaluator.evaluate(node.func, frame):
                if isinstance(target.value, Callable) and names_in(target.value.function.node) & _RANK:
                    return True
    return False


def rank_marks(evaluator: Evaluator, guards: tuple[Guard, ...]) -> list[Mark]:
    """The lines where a rank becomes a condition."""
    marks = []
    for guard in guards:
        if not depends_on_rank(evaluator, guard.test, guard.frame, 4):
            continue
        marks.append(
            Mark(guard.frame.module.path, guard.test.lineno, f"worker chosen by: {describe(guard.test)}")
        )
        marks.extend(_rank_lines(evaluator, guard.test, guard.frame, 4))
    return marks


def _rank_lines(evaluator: Evaluator, test: ast.AST, frame: Frame, depth: int) -> list[Mark]:
    found: list[Mark] = []
    if depth == 0:
        return found
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            for definition in evaluator.definitions(frame.module, frame.scope).get(node.id, []):
                expression = definition.expression
                if definition.kind == "assign" and expression is not None and names_in(expression) & _RANK:
                    line = getattr(definition.statement, "lineno", 0)
                    found.append(Mark(frame.module.path, line, "the rank decides"))
            binding = frame.bindings.get(node.id)
            if binding is not None and binding.expression is not None and binding.frame is not None:
                found.extend(_rank_lines(evaluator, binding.expression, binding.frame, depth - 1))
        elif isinstance(node, ast.Call):
            for target in evaluator.evaluate(node.func, frame):
                if isinstance(target.value, Callable):
                    function = target.value.function
                    for inner in ast.walk(function.node):
                        if (
                            isinstance(inner, ast.Return)
                            and inner.value is not None
                            and names_in(inner.value) & _RANK
                        ):
                            found.append(Mark(function.module.path, inner.lineno, "the rank decides"))
    return found
