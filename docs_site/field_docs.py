"""The fields of a dataclass with the sentence below each in the source.

Python does not keep a string below a field, so it is read from the source. Documentation and code are one text.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap


@dataclasses.dataclass(frozen=True)
class FieldDoc:
    """A field, the class that declares it, and what the source says about it (empty: nothing)."""

    name: str
    owner: str
    words: str


def field_docs(cls: type) -> list[FieldDoc]:
    """Every field of a dataclass in its order, inherited ones first."""
    docs: dict[str, FieldDoc] = {}
    for part in reversed(cls.__mro__):
        if dataclasses.is_dataclass(part):
            docs |= {doc.name: doc for doc in _declared(part)}
    return [docs[field.name] for field in dataclasses.fields(cls) if not field.name.startswith("_")]


@functools.cache
def _declared(cls: type) -> tuple[FieldDoc, ...]:
    """The fields that the class itself declares."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = []
    for at, node in enumerate(tree.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            below = tree.body[at + 1] if at + 1 < len(tree.body) else None
            found.append(FieldDoc(node.target.id, cls.__name__, _text(below)))
    return tuple(found)


def _text(node: ast.stmt | None) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return ""
