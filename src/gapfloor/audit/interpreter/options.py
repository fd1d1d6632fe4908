"""Settings a user can give: argparse, absl and click options, dataclass fields, tables of options."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.reading.index import ClassInfo, Index, ModuleInfo, kept_on_node, last_name
from gapfloor.audit.reading.settings import FileSetting, read_settings
from gapfloor.audit.reading.sources import SETTINGS_ENDINGS

#: What `literal` gives for an expression that is none, and the default of a setting that has none.
MISSING = object()
CASTS = {"int": int, "float": float, "bool": bool, "str": str}


@dataclass(frozen=True)
class OptionEntry:
    """One setting: its name, its default if the text has one, and where."""

    name: str
    default: Any
    module: ModuleInfo | None
    mark: Mark

    @property
    def has_default(self) -> bool:
        """Whether a value is stated."""
        return self.default is not MISSING


class OptionTable:
    """Every setting of a repository, by name; case and dashes do not matter.

    Settings come from the code (argparse, dataclasses, tables) and from configuration files. `given` are those that a
    command line states; they outweigh every default.
    """

    def __init__(
        self, index: Index, *, given: dict[str, Any] | None = None, files: tuple[str, ...] = ()
    ) -> None:
        self._entries: dict[str, list[OptionEntry]] = defaultdict(list)
        self._given = {_normal(name): value for name, value in (given or {}).items()}
        self._in_files: dict[str, list[FileSetting]] = defaultdict(list)
        self._sections: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        self._chosen_files = files
        for file in index.settings:
            for setting in read_settings(file):
                self._in_files[_normal(setting.path[-1])].append(setting)
                for length in range(1, len(setting.path)):
                    self._sections[_normal(setting.path[length - 1])].add(setting.path[:length])
        for module in index.modules.values():
            for node in module.nodes:
                for name, default, line in _options_of(node):
                    self._entries[_normal(name)].append(_entry(name, default, line, module))

    def is_section(self, path: tuple[str, ...]) -> bool:
        """Whether configuration files have a group of settings under these keys."""
        return any(one[-len(path) :] == path for one in self._sections.get(_normal(path[-1]), ()))

    def in_files(self, path: tuple[str, ...], script: ModuleInfo) -> list[FileSetting]:
        """The settings under these keys, from the files that a command or the script's text names, else from all."""
        wanted = [*map(_normal, path)]
        found = [
            one
            for one in self._in_files.get(wanted[-1], ())
            if [*map(_normal, one.path[-len(path) :])] == wanted
        ]
        if len({repr(one.value) for one in found}) < 2:
            return found
        for names in (self._chosen_files, _file_names(script.tree)):
            chosen = [one for one in found if any(_is_named(one.file, name) for name in names)]
            if chosen:
                return chosen
        return found

    def from_files(self, path: tuple[str, ...], script: ModuleInfo) -> OptionEntry | None:
        """The setting under these keys of configuration files; without a value where files disagree."""
        found = self.in_files(path, script)
        if not found:
            return None
        name, value, what = ".".join(path), found[0].value, f"is {found[0].value!r}"
        if len({repr(one.value) for one in found}) > 1:
            value, what = (
                MISSING,
                f"differs between {', '.join(dict.fromkeys(one.file for one in found[:3]))}",
            )
        return OptionEntry(name, value, None, Mark(found[0].file, found[0].line, f"setting '{name}' {what}"))

    def given_entry(self, name: str) -> OptionEntry | None:
        """The setting as the command line states it."""
        if _normal(name) not in self._given:
            return None
        value = self._given[_normal(name)]
        return OptionEntry(name, value, None, Mark("(command line)", 1, f"--{name} {value}"))

    def find(self, name: str, module: ModuleInfo | None) -> OptionEntry | None:
        """The setting called `name`: the one of `module`, else the only one, else one all of whose kin agree."""
        entries = self._entries.get(_normal(name), [])
        group = [entry for entry in entries if entry.module is module] or entries
        if len({(entry.has_default, repr(entry.default)) for entry in group}) > 1:
            return OptionEntry(name, MISSING, group[0].module, group[0].mark)
        return group[0] if group else None


@kept_on_node
def _file_names(script: ast.Module) -> tuple[str, ...]:
    """Texts of a script that name a configuration file, with its ending or as Hydra does."""
    texts = [
        one.value for one in ast.walk(script) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    ]
    named = [one for one in texts if one.endswith(SETTINGS_ENDINGS) or not set("/ .") & set(one)]
    return tuple(one for one in named if 2 < len(one) < 120)


@cache
def _is_named(file: str, text: str) -> bool:
    """Whether a text names a file, with or without folders and ending."""
    name = file.rsplit("/", 1)[-1]
    return file.endswith(text) if "/" in text else text in (name, name.rsplit(".", 1)[0])


def _normal(name: str) -> str:
    return name.lstrip("-").replace("-", "_").lower()


def _options_of(node: ast.AST) -> list[tuple[str, Any, int]]:
    if isinstance(node, ast.Call):
        return _options_of_call(node)
    if isinstance(node, ast.ClassDef) and is_settings_class(node):
        return [(name, default, line) for name, (default, line) in settings_fields(node).items()]
    return []


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _options_of_call(node: ast.Call) -> list[tuple[str, Any, int]]:
    called = last_name(node.func)
    strings = [*filter(None, map(_text, node.args))]
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if called in ("add_argument", "option") and strings:
        long = [text for text in strings if text.startswith("--")] or strings
        name = literal(keywords["dest"]) if "dest" in keywords else long[0]
        default, line = None, node.lineno
        if "default" in keywords:
            default, line = literal(keywords["default"]), keywords["default"].lineno
            if isinstance(default, str) and "type" in keywords:
                default = cast(last_name(keywords["type"]), default)  # as argparse does it
        elif "action" in keywords:
            default = {"store_true": False, "store_false": True}.get(
                str(literal(keywords["action"])), MISSING
            )
        return [(str(name).split("/")[0], default, line)]
    if called.startswith("DEFINE_") and strings and len(node.args) > 1:
        return [(strings[0], literal(node.args[1]), node.lineno)]
    if called == "append" and len(node.args) == 1 and isinstance(node.args[0], ast.Tuple):
        # A row of a hand-written table: two names, then a type and a default, or nothing for a switch.
        row = node.args[0].elts
        names = [*filter(None, map(_text, row[:2]))]
        if len(names) == 2 and len(row) >= 4 and last_name(row[2]) in CASTS:
            return [(names[1], literal(row[3]), node.lineno)]
        if len(names) == 2 and (len(row) == 2 or (len(row) == 3 and isinstance(row[2], ast.Constant))):
            return [(names[1], False, node.lineno)]
    return []


def cast(kind: str, value: Any) -> Any:
    """A value as `int`, `float`, `bool` or `str` make it, or `MISSING`."""
    try:
        return CASTS[kind](value)
    except (KeyError, ValueError, OverflowError):
        return MISSING


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
            if isinstance(value, ast.Call) and last_name(value) in ("field", "Field"):
                value = next((one.value for one in value.keywords if one.arg == "default"), None)
            default = MISSING if value is None else literal(value)
            fields[statement.target.id] = (default, statement.lineno)
    return fields


def field_of(info: ClassInfo, name: str) -> OptionEntry | None:
    """The field `name` of a settings class of the repository."""
    found = settings_fields(info.node).get(name)
    return _entry(name, *found, info.module) if found is not None else None


def _entry(name: str, default: Any, line: int, module: ModuleInfo) -> OptionEntry:
    shown = repr(default)[:40] if default is not MISSING else "not a literal"
    name = name.lstrip("-").replace("-", "_")
    return OptionEntry(name, default, module, Mark(module.path, line, f"option '{name}', default {shown}"))


def literal(node: ast.expr) -> Any:
    """The value of a literal expression, or `MISSING`."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = literal(node.operand) if isinstance(node.operand, ast.Constant) else MISSING
        return -value if isinstance(value, int | float) else MISSING
    if isinstance(node, ast.Call) and last_name(node) in CASTS and len(node.args) == 1:
        value = literal(node.args[0])
        return cast(last_name(node), value) if isinstance(value, int | float) else MISSING
    return MISSING
