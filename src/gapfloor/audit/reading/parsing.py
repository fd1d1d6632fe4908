"""From text to a syntax tree that is safe to walk: bounded depth, no warnings, Python 2 named as such.

The code of a Jupyter notebook is one source, cell by cell in the order of the file: line numbers count the lines of the
code cells, one after the other. Shell and magic lines become comments; a cell that is not Python (`%%bash`) becomes
comments as a whole.
"""

from __future__ import annotations

import ast
import json
import re
import warnings

#: Deeper trees are generated or hostile. CPython's own parser refuses what its stack cannot hold.
DEEPEST_TREE = 250
#: Longer literals are data, not code; their further elements are left out of the tree.
LONGEST_LITERAL = 400

_PYTHON_2 = re.compile(
    r"^\s*(print\s+[^(=\s]|exec\s+['\"]|raise\s+\w+\s*,|except\s+[\w.]+\s*,\s*\w+\s*:)", re.MULTILINE
)


_OLD_NAME = re.compile(r"(?<=\.)async\b(?! )|\basync(?=\s*=[^=])")


def parse_source(text: str) -> ast.Module | str:
    """The tree of `text`, or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        # `async` was an ordinary name until Python 3.7; columns do not matter here, lines do.
        renamed = _OLD_NAME.sub("async_", text)
        if renamed != text:
            return parse_source(renamed)
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
        for node in level:
            _shorten(node)
        level = [child for node in level for child in child_nodes(node)]
        if not level:
            return True
    return False


_NOT_ASKED_FOR = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.type_ignore)


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, without operators and contexts, which no reader asks for."""
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, _NOT_ASKED_FOR)]


def _shorten(node: ast.AST) -> None:
    """Cut a long literal and leave a starred element, which every reader takes for elements that are not known."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) > LONGEST_LITERAL:
        rest = ast.copy_location(ast.Name("more_elements", ast.Load()), node)
        node.elts = [*node.elts[:LONGEST_LITERAL], ast.copy_location(ast.Starred(rest, ast.Load()), node)]
    elif isinstance(node, ast.Dict) and len(node.keys) > LONGEST_LITERAL:
        rest = ast.copy_location(ast.Name("more_elements", ast.Load()), node)
        node.keys = [*node.keys[:LONGEST_LITERAL], None]
        node.values = [*node.values[:LONGEST_LITERAL], rest]


#: Magic words whose cells are Python; those of others (`%%bash`) are not.
_OF_PYTHON = ("%%time", "%%capture", "%%prun")


def notebook_source(data: bytes) -> str | None:
    r"""The Python source of a notebook's code cells, or None when the file is not a notebook in Python.

    >>> notebook_source(b'{"cells": [{"cell_type": "code", "source": ["!ls\\n", "x = 1"]}]}')
    '#!ls\nx = 1\n'
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list):
        return None
    parts = [_cell_source(cell) for cell in cells if isinstance(cell, dict)]
    return "".join(part + "\n" for part in parts if part is not None)


def _cell_source(cell: dict[str, object]) -> str | None:
    source = cell.get("source", cell.get("input", ""))
    source = "".join(map(str, source)) if isinstance(source, list) else source
    if cell.get("cell_type") != "code" or not isinstance(source, str) or "\0" in source:
        return None
    lines = source.splitlines()
    text = "\n".join(map(_python_line, lines))
    is_foreign = source.lstrip().startswith("%%") and not source.lstrip().startswith(_OF_PYTHON)
    # One broken cell (a fragment, a question mark) must not hide the others.
    is_broken = is_foreign or isinstance(parse_source(text), str)
    return "\n".join("#" + line for line in lines) if is_broken else text


def _python_line(line: str) -> str:
    stripped = line.lstrip()
    if stripped.startswith(("!", "%", "?")) or (stripped.endswith("?") and stripped[:-1].isidentifier()):
        indent = line[: len(line) - len(stripped)]
        return f"{indent}pass  # {stripped}" if indent else "#" + stripped
    return line
