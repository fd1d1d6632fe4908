"""From text to a syntax tree that is safe to walk: bounded depth, no warnings, Python 2 named as such."""

from __future__ import annotations

import ast
import re
import warnings

#: Deeper trees are generated or hostile. CPython's own parser refuses what its stack cannot hold.
DEEPEST_TREE = 250

_PYTHON_2 = re.compile(
    r"^\s*(print\s+[^(=\s]|exec\s+['\"]|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)", re.MULTILINE
)


def parse_source(text: str) -> ast.Module | str:
    """The tree of `text`, or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        if _PYTHON_2.search(text):
            return "Python 2 syntax"
        return f"syntax error at line {error.lineno}"
    except (ValueError, RecursionError, MemoryError):
        return "nested too deeply"
    if not _is_shallow(tree):
        return "nested too deeply"
    return tree


def _is_shallow(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST_TREE):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return True
    return False
