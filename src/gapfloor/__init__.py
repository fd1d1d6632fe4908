"""gapfloor: what a generalization gap really measures.

The public names are those of `__init__.pyi`, which editors and type checkers read too. They are imported on first use,
so that `import gapfloor` loads neither torch nor an engine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from gapfloor.lazy import lazy_names, names_in_stub

__version__ = "0.3.0"

_HOMES = names_in_stub(__name__, Path(__file__).with_suffix(".pyi"))
_find, __dir__ = lazy_names(__name__, _HOMES)

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES and not name.startswith("_"):
        from gapfloor.old_names import OLD_NAMES, old_name

        if name in OLD_NAMES:
            return old_name(name)
    return _find(name)


class _Package(ModuleType):
    """`audit`, `levels` and `report` are public functions and folders: importing the folder leaves the function."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
