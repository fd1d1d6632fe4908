"""From text to a syntax tree that is safe to walk: bounded depth, no warnings, Python 2 named as such."""

from __future__ import annotations

import ast
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


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def child_nodes(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below a node, without operators and contexts, which no reader asks for."""
    fields = _FIELDS.get(type(node))
    if fields is None:
        skipped = ("ctx", "op", "ops", "type_ignores", "type_comment", "lineno")
        fields = _FIELDS[type(node)] = tuple(name for name in node._fields if name not in skipped)
    found: list[ast.AST] = []
    for name in fields:
        value = getattr(node, name, None)
        if type(value) is list:
            found.extend(item for item in value if isinstance(item, ast.AST))
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _shorten(node: ast.AST) -> None:
    """Cut a long literal and leave a starred element, which every reader takes for elements that are not known."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) > LONGEST_LITERAL:
        rest = ast.copy_location(ast.Name("more_elements", ast.Load()), node)
        node.elts = [*node.elts[:LONGEST_LITERAL], ast.copy_location(ast.Starred(rest, ast.Load()), node)]
    elif isinstance(node, ast.Dict) and len(node.keys) > LONGEST_LITERAL:
        rest = ast.copy_location(ast.Name("more_elements", ast.Load()), node)
        node.keys = [*node.keys[:LONGEST_LITERAL], None]
        node.values = [*node.values[:LONGEST_LITERAL], rest]
