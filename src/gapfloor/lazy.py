"""Public names that are imported on first use.

A package lists where its names live and takes its `__getattr__` and `__dir__` from here: importing gapfloor must load
neither torch nor an engine nor scipy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
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
