"""Names that are imported on first use: importing gapfloor must load neither torch nor an engine nor scipy.

A package lists where its names live and takes its `__getattr__` and `__dir__` from here.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`; `homes` maps each public name to a module within it.

    >>> find, names = lazy_names("gapfloor", {"unknown_name": "errors"})
    >>> find("unknown_name").__name__, names()
    ('unknown_name', ['unknown_name'])
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    def names() -> list[str]:
        return sorted(homes)

    return find, names


def names_in_stub(package: str, path: Path) -> dict[str, str]:
    """The names that the stub of a package imports from its own modules -> their modules."""
    return {
        alias.asname or alias.name: str(node.module).removeprefix(f"{package}.")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def resolve(path: str) -> Any:
    """What `module:name` or `module:Class.method` stands for."""
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


class LazyMethod:
    """A method that lives in `api`: a plan or a store does not import what measures or analyses.

    `home` is `module:function`. With `is_static` the function gets no instance; otherwise the instance is its first
    argument, and `Class.method(instance)` works too.
    """

    def __init__(self, home: str, *, is_static: bool = False) -> None:
        self.home, self.is_static = home, is_static

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        function: Callable[..., Any] = resolve(self.home)
        return function if instance is None or self.is_static else partial(function, instance)
