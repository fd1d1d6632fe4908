"""Settings a user can give: argparse, absl and click options, dataclass fields, tables of options."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.reading.index import ClassInfo, Index, ModuleInfo, last_name
from gapfloor.audit.reading.settings import FileSetting, read_settings
from gapfloor.audit.reading.sources import SETTINGS_ENDINGS

_MISSING = object()


@dataclass(frozen=True)
class OptionEntry:
    """One setting: its name, its default if the text has one, and where."""

    name: str
    default: Any
    has_default: bool
    module: ModuleInfo | None
    mark: Mark


class OptionTable:
    """Every setting of a repository, by name; case and dashes do not matter.

    Settings come from the code (argparse, dataclasses, tables) and from configuration files. `given` are those that a
    command line states; they outweigh every default.
    """

    def __init__(
        self,
        index: Index,
        *,
        given: dict[str, Any] | None = None,
        files: tuple[str, ...] = (),
    ) -> None:
        self._entries: dict[str, list[OptionEntry]] = defaultdict(list)
        self._given = {_normal(name): value for name, value in (given or {}).items()}
        self._in_files: dict[str, list[FileSetting]] = defaultdict(list)
        self._sections: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        self._chosen_files = files
        self._named: dict[str, tuple[str, ...]] = {}
        for file in index.settings:
            for setting in read_settings(file):
                self._in_files[_normal(setting.path[-1])].append(setting)
                for length in range(1, len(setting.path)):
                    self._sections[_normal(setting.path[length - 1])].add(setting.path[:length])
        for module in index.modules.values():
            for node in module.order:
                for name, default, line in _options_of(node):
                    self._entries[_normal(name)].append(_entry(name, default, line, module))

    def is_section(self, path: tuple[str, ...]) -> bool:
        """Whether configuration files have a group of settings under these keys."""
        return any(one[-len(path) :] == path for one in self._sections.get(_normal(path[-1]), ()))

    def in_files(self, path: tuple[str, ...], script: ModuleInfo | None) -> list[FileSetting]:
        """The settings under these keys, from the files that a command or the script's text names, else from all."""
        found = [
            one
            for one in self._in_files.get(_normal(path[-1]), ())
            if tuple(map(_normal, one.path[-len(path) :])) == tuple(map(_normal, path))
        ]
        if len({repr(one.value) for one in found}) < 2:
            return found
        for names in (self._chosen_files, self._named_files(script)):
            chosen = [one for one in found if any(_is_named(one.file, name) for name in names)]
            if chosen:
                return chosen
        return found

    def _named_files(self, script: ModuleInfo | None) -> tuple[str, ...]:
        """Configuration files that the script itself names."""
        if script is None:
            return ()
        if script.path not in self._named:
            self._named[script.path] = _file_names(script)
        return self._named[script.path]

    def from_files(self, path: tuple[str, ...], script: ModuleInfo | None) -> OptionEntry | None:
        """The setting under these keys of configuration files; without a value where files disagree."""
        found = self.in_files(path, script)
        if not found:
            return None
        values = {repr(one.value) for one in found}
        name = ".".join(path)
        if len(values) == 1:
            mark = Mark(found[0].file, found[0].line, f"setting '{name}' is {found[0].value!r}")
            return OptionEntry(name, found[0].value, True, None, mark)
        files = ", ".join(dict.fromkeys(one.file for one in found[:3]))
        what = f"setting '{name}' differs between {files}"
        return OptionEntry(name, None, False, None, Mark(found[0].file, found[0].line, what))

    def given_entry(self, name: str) -> OptionEntry | None:
        """The setting as the command line states it."""
        if _normal(name) not in self._given:
            return None
        value = self._given[_normal(name)]
        return OptionEntry(name, value, True, None, Mark("(command line)", 1, f"--{name} {value}"))

    def find(self, name: str, module: ModuleInfo | None) -> OptionEntry | None:
        """The setting called `name`: the one of `module`, else the only one, else one all of whose kin agree."""
        entries = self._entries.get(_normal(name), [])
        here = [entry for entry in entries if entry.module is module]
        for group in (here, entries):
            defaults = {(entry.has_default, repr(entry.default)) for entry in group}
            if len(defaults) == 1:
                return group[0]
            if defaults:
                return OptionEntry(name, None, False, group[0].module, group[0].mark)
        return None


def _file_names(script: ModuleInfo) -> tuple[str, ...]:
    texts = [
        node.value
        for node in script.order
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and 2 < len(node.value) < 120
    ]
    hydra = [text for text in texts if "/" not in text and " " not in text and "." not in text]
    return tuple(text for text in [*texts, *hydra] if text.endswith(SETTINGS_ENDINGS) or text in hydra)


@cache
def _is_named(file: str, text: str) -> bool:
    """Whether a text names a file, with or without folders and ending."""
    stem = file.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    named = text.rsplit("/", 1)[-1]
    return file.endswith(text) if "/" in text else named in (stem, file.rsplit("/", 1)[-1])


def _normal(name: str) -> str:
    return name.lstrip("-").replace("-", "_").lower()


def _options_of(node: ast.AST) -> list[tuple[str, Any, int]]:
    if isinstance(node, ast.Call):
        return _options_of_call(node)
    if isinstance(node, ast.ClassDef) and is_settings_class(node):
        return [(name, default, line) for name, (default, line) in settings_fields(node).items()]
    return []


def _options_of_call(node: ast.Call) -> list[tuple[str, Any, int]]:
    called = last_name(node.func)
    strings = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if called in ("add_argument", "option") and strings:
        long = [text for text in strings if text.startswith("--")] or strings
        name = literal(keywords["dest"]) if "dest" in keywords else long[0]
        line = keywords["default"].lineno if "default" in keywords else node.lineno
        if "default" in keywords:
            default = _converted(literal(keywords["default"]), keywords.get("type"))
        elif "action" in keywords:
            action = literal(keywords["action"])
            default = {"store_true": False, "store_false": True}.get(str(action), _MISSING)
        else:
            default = None
        return [(str(name).split("/")[0], default, line)]
    if called.startswith("DEFINE_") and strings and len(node.args) > 1:
        return [(strings[0], literal(node.args[1]), node.lineno)]
    if called == "append" and len(node.args) == 1 and isinstance(node.args[0], ast.Tuple):
        return _option_of_row(node.args[0])
    return []


def _converted(default: Any, kind: ast.expr | None) -> Any:
    """A default that is a string passes through the option's type, as argparse does it."""
    if not isinstance(default, str) or kind is None:
        return default
    name = last_name(kind)
    if name == "str":
        return default
    try:
        return {"int": int, "float": float, "bool": bool}[name](default)
    except (KeyError, ValueError):
        return _MISSING


def _option_of_row(row: ast.Tuple) -> list[tuple[str, Any, int]]:
    """A row of a hand-written table: two names, then a type and a default, or nothing for a switch."""
    names = [
        item.value for item in row.elts[:2] if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]
    if len(names) != 2:
        return []
    if (
        len(row.elts) >= 4
        and isinstance(row.elts[2], ast.Name)
        and row.elts[2].id in ("int", "float", "str", "bool")
    ):
        return [(names[1], literal(row.elts[3]), row.lineno)]
    if len(row.elts) == 2 or (len(row.elts) == 3 and isinstance(row.elts[2], ast.Constant)):
        return [(names[1], False, row.lineno)]
    return []


def is_settings_class(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass or the like: annotated fields under a decorator or a known base."""
    decorators = {last_name(item) for item in node.decorator_list}
    bases = {last_name(item) for item in node.bases}
    return bool(decorators & {"dataclass", "dataclasses", "define", "frozen", "configclass"}) or bool(
        bases & {"Tap", "BaseModel", "NamedTuple", "BaseSettings"}
    )


def settings_fields(node: ast.ClassDef) -> dict[str, tuple[Any, int]]:
    """The annotated fields of a settings class with their literal defaults."""
    fields: dict[str, tuple[Any, int]] = {}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            value = statement.value
            default = _MISSING if value is None else literal(value)
            if isinstance(value, ast.Call) and last_name(value) in ("field", "Field"):
                given = {keyword.arg: keyword.value for keyword in value.keywords}
                default = literal(given["default"]) if "default" in given else _MISSING
            fields[statement.target.id] = (default, statement.lineno)
    return fields


def field_of(info: ClassInfo, name: str) -> OptionEntry | None:
    """The field `name` of a settings class of the repository."""
    found = settings_fields(info.node).get(name)
    if found is None:
        return None
    return _entry(name, *found, info.module)


def _entry(name: str, default: Any, line: int, module: ModuleInfo) -> OptionEntry:
    has_default = default is not _MISSING
    shown = repr(default)[:40] if has_default else "not a literal"
    name = name.lstrip("-").replace("-", "_")
    mark = Mark(module.path, line, f"option '{name}', default {shown}")
    return OptionEntry(name, default if has_default else None, has_default, module, mark)


def literal(node: ast.expr) -> Any:
    """The value of a literal expression, or a marker that it has none."""
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        value = node.operand.value
        return -value if isinstance(value, int | float) else _MISSING
    if isinstance(node, ast.Call) and last_name(node) in ("int", "float", "bool") and len(node.args) == 1:
        value = literal(node.args[0])
        if value is not _MISSING and isinstance(value, int | float | bool):
            return {"int": int, "float": float, "bool": bool}[last_name(node)](value)
    return _MISSING


def is_missing(value: Any) -> bool:
    """Whether `literal` found no literal."""
    return value is _MISSING
