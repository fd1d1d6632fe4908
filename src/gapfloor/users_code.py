"""The user's own code by name, `package.module:name`: imported only because the user named it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from gapfloor.errors import GapfloorError


def put_folder_on_path() -> None:
    """Let modules be found in the folder where the command is typed: a user's script usually lies there."""
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def import_from_here(module_name: str, *, named: str, error: type[GapfloorError]) -> ModuleType:
    """The module, also from the folder where the command is typed; `named` says in words who named it."""
    put_folder_on_path()
    try:
        return importlib.import_module(module_name)
    except Exception as failure:
        raise error(
            f"The module of {named} does not import: {type(failure).__name__}: {failure}"
        ) from failure


def named_callable(name: str, *, what: str, error: type[GapfloorError], kind: str = "") -> Any:
    """What `package.module:name` means, as the factory or class of a `what`."""
    module_name, _, attribute = name.partition(":")
    module = import_from_here(module_name, named=f"the {what} {name}", error=error)
    found = getattr(module, attribute, None)
    if not callable(found):
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        listed = ", ".join(sorted(names)[:8]) or "nothing"
        raise error(f"{module_name} has no {kind}'{attribute}': it has {listed}.")
    return found
