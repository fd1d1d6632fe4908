"""Keyword arguments that several functions share: declared once, as the fields of a dataclass.

A function that is decorated with `takes(Settings)` has the fields of `Settings` in its signature and in its docstring,
so that editors, notebooks, the documentation and the command line all show them. The function itself receives them as
`**settings` and makes the dataclass with `read_settings`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_type_hints

from gapfloor.errors import nearest_names

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: The width of docstrings.
_WIDTH = 120

#: A field of a dataclass and the text below it.
_FIELD = re.compile(r'^    (\w+): [^\n]+\n    """(.+?)"""', re.M | re.S)


@cache
def field_words(kind: type) -> dict[str, str]:
    """Each field of a dataclass, also an inherited one -> the text below it in the source."""
    words: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        with contextlib.suppress(OSError, TypeError):  # a distribution without sources
            source = inspect.getsource(each) if dataclasses.is_dataclass(each) else ""
            for name, text in _FIELD.findall(source):
                words[name] = " ".join(text.split())
    return words


def takes(kind: type) -> Callable[[F], F]:
    """Put the fields of a dataclass in the place of `**settings`, in signature and docstring."""

    def decorate(function: F) -> F:
        signature, hints, words = inspect.signature(function), get_type_hints(kind), field_words(kind)
        (rest,) = [each for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
        shared = [
            rest.replace(
                name=field.name, kind=rest.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in dataclasses.fields(kind)
        ]
        own = [each for each in signature.parameters.values() if each is not rest]
        function.__signature__ = signature.replace(parameters=[*own, *shared])  # type: ignore[attr-defined]
        lines = [
            textwrap.fill(
                f"{each.name}: {words.get(each.name, '')}", _WIDTH, initial_indent=" " * 4,
                subsequent_indent=" " * 8, break_on_hyphens=False,
            )
            for each in shared
        ]  # fmt: skip
        if function.__doc__:
            # Python 3.13 removes the indentation of docstrings; cleandoc does the same for the others.
            before, found, after = inspect.cleandoc(function.__doc__).partition(f"\n    **{rest.name}:")
            assert found, f"the docstring does not document **{rest.name}"
            left = itertools.dropwhile(lambda line: line.startswith(" " * 8), after.splitlines()[1:])
            function.__doc__ = "\n".join([before, *lines, *left])
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
