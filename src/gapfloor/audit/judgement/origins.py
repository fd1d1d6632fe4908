"""Where a name comes from: through arguments, other names for the same thing, and enclosing functions."""

from __future__ import annotations

import ast

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.reaching_definitions import Assignment
from gapfloor.audit.interpreter.values import Frame

_DEEPEST = 12


def follow_name(evaluator: Evaluator, node: ast.AST, frame: Frame) -> tuple[ast.AST, Frame, list[Assignment]]:
    """The expression that a name stands for, its frame, and the statements that give the last name its value."""
    for _ in range(_DEEPEST):
        if not isinstance(node, ast.Name):
            break
        stated = evaluator.definitions(frame.module, frame.scope).get(node.id, [])
        binding = frame.bindings.get(node.id)
        meant = stated[0].expression if len(stated) == 1 and not stated[0].path else None
        if isinstance(meant, ast.Name):
            node = meant
        elif stated:
            return node, frame, stated
        elif binding is not None and binding.expression is not None and binding.frame is not None:
            node, frame = binding.expression, binding.frame
        elif binding is None and frame.parent is not None:
            frame = frame.parent
        else:
            break
    return node, frame, []
