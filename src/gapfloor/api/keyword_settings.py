"""Keyword arguments that several functions share: declared once, as the fields of a dataclass.

A function that is decorated with `takes(Settings)` has the fields of `Settings` in its signature and in its docstring,
so that editors, notebooks, the documentation and the command line all show them. The function itself receives them as
`**settings` and makes the dataclass with `read_settings`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar, get_type_hints

from gapfloor.errors import nearest_names

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: The width of docstrings.
_WIDTH = 120


@cache
def field_words(kind: type) -> dict[str, str]:
    """Each field of a dataclass, also an inherited one -> the text below it in the source."""
    words: dict[str, str] = {}
    for each in reversed([base for base in kind.__mro__ if dataclasses.is_dataclass(base)]):
        try:
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        except (OSError, TypeError):  # a distribution without sources
            continue
        assert isinstance(definition, ast.ClassDef)
        for node, below in pairwise(definition.body):
            if not isinstance(node, ast.AnnAssign) or not isinstance(below, ast.Expr):
                continue
            if isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
                words[ast.unparse(node.target)] = " ".join(below.value.value.split())
    return words


def takes(*kinds: type) -> Callable[[F], F]:
    """Put the fields of dataclasses in the place of `**settings`, in signature and docstring."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        (rest,) = [each for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
        own = [each for each in signature.parameters.values() if each is not rest]
        hints = {name: hint for kind in kinds for name, hint in get_type_hints(kind).items()}
        shared = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_default(field),
                annotation=hints[field.name],
            )
            for kind in kinds
            for field in dataclasses.fields(kind)
        ]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        words = {name: text for kind in kinds for name, text in field_words(kind).items()}
        lines = [_entry(each.name, words.get(each.name, "")) for each in shared]
        if function.__doc__:
            function.__doc__ = _replaced(function.__doc__, rest.name, lines)
        return function

    return decorate


def read_settings(kind: type[T], settings: Mapping[str, Any]) -> T:
    """The dataclass made of keyword arguments; an unknown name is a `TypeError` with the nearest ones."""
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for name in settings:
        if name not in known:
            raise TypeError(f"There is no argument '{name}': {nearest_names(name, known)}")
    return kind(**settings)


def names_of(given: str | Sequence[str]) -> list[str]:
    """Names as a list, or as one text with commas.

    >>> names_of("sampled, greedy"), names_of(("own",))
    (['sampled', 'greedy'], ['own'])
    """
    parts = given.split(",") if isinstance(given, str) else given
    return [str(part).strip() for part in parts if str(part).strip()]


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if callable(field.default_factory) else field.default


def _entry(name: str, words: str) -> str:
    return textwrap.fill(
        f"{name}: {words}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False
    )


def _replaced(text: str, name: str, lines: list[str]) -> str:
    """The docstring with the entry of `**name` replaced by others."""
    # Python 3.13 removes the indentation of docstrings; cleandoc does the same for the others.
    before, found, after = inspect.cleandoc(text).partition(f"\n    **{name}:")
    assert found, f"the docstring does not document **{name}"
    rest = after.splitlines()
    following = next((at for at, line in enumerate(rest) if at and not line.startswith(" " * 8)), len(rest))
    return "\n".join([before, *lines, *rest[following:]])
