"""The modules of the package and what they import, read from their source without importing them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from gapfloor.cli.commands import COMMANDS
from gapfloor.lazy import names_in_stub

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"


def readme_script() -> str:
    """The Python block of the README."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    return str(block)


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name; a package is its `__init__.py`."""
    found = {}
    for path in sorted((SOURCE / "gapfloor").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def folder_of(module: str) -> str:
    """The first part below the package: `rules` for `gapfloor.rules.rule`, `errors` for `gapfloor.errors`."""
    return module.split(".")[1] if "." in module else ""


@cache
def tree_of(path: Path) -> ast.Module:
    """The parsed source of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The modules of the package that a file imports, wherever in the file, or names in a string."""
    found = set(_imports(tree_of(path)))
    if "iter_modules(__path__)" in path.read_text(encoding="utf-8"):
        # A folder of plug-ins: its package imports whatever lies in it.
        package = ".".join(path.parent.relative_to(SOURCE).parts)
        found |= {name for name in modules() if name.startswith(f"{package}.")}
    # A file that another one reads by name, e.g. to run it in a process of its own.
    siblings = {each.name: name for name, each in modules().items() if each.parent == path.parent}
    constants = (node.value for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant))
    found |= {siblings[value] for value in constants if isinstance(value, str) and value in siblings}
    return frozenset(found)


def reachable(paths: Iterable[Path]) -> set[str]:
    """The modules that are imported by these files, directly or through each other."""
    waiting = [name for path in paths for name in imports_of(path)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imports_of(modules()[name])
    return seen


def _imports(tree: ast.Module) -> Iterator[str]:
    known = modules()
    runs_commands = any(
        isinstance(node, ast.Import | ast.ImportFrom) and "command_line" in ast.unparse(node)
        for node in tree.body
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            yield node.module
            yield from (_home(node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Constant) and node.value in known:
            yield str(node.value)
        elif isinstance(node, ast.Constant) and runs_commands and node.value in _commands():
            yield from _commands()[str(node.value)]


def _home(package: str, name: str) -> str:
    """Where a name that is imported from a package lives: a submodule, or the module in its `_HOMES`."""
    if f"{package}.{name}" in modules():
        return f"{package}.{name}"
    home = _homes(package).get(name)
    return f"{package}.{home}" if home else package


@cache
def _homes(package: str) -> dict[str, str]:
    if package == "gapfloor":
        return names_in_stub(package, SOURCE / "gapfloor" / "__init__.pyi")
    for node in tree_of(modules()[package]).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["_HOMES"]:
            homes = ast.literal_eval(node.value)
            assert isinstance(homes, dict)
            return homes
    return {}


@cache
def _commands() -> dict[str, list[str]]:
    """The modules behind each command of the table, by its first word: a test that runs a command reaches them."""
    found: dict[str, list[str]] = {}
    for words, entry in COMMANDS.items():
        found.setdefault(
            words.split()[0], ["gapfloor.cli.main", "gapfloor.cli.generate", "gapfloor.cli.show"]
        ).append(entry.function.partition(":")[0])
    return found
