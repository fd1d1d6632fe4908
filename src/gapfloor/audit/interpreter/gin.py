"""Parameters that gin sets: a function or a class marked as configurable takes them from gin files or bindings.

A reference (`@name`) stands for a function or a class of the repository, `@name()` for what calling it gives. Where
several gin files may have been used, each of their values is an alternative, and so is the default if one of them
leaves the parameter alone. Source: google/gin-config docs/index.md (bindings, references, scopes, macros, includes).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.values import (
    Alternative,
    Binding,
    Frame,
    Instance,
    Mark,
    Option,
    Unknown,
)
from gapfloor.audit.reading.index import FunctionInfo, ModuleInfo, last_name
from gapfloor.audit.reading.settings import FileSetting, GinReference, Unreadable

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator

#: More values than this are not alternatives to weigh; the parameter is unknown then.
MOST_VALUES = 12


def configurable_names(function: FunctionInfo, receiver: Alternative | None) -> tuple[str, ...]:
    """The names under which gin can set the parameters of a function, or of the class that it constructs."""
    if isinstance(function.node, ast.Lambda):
        return ()
    owners = [function.owner] if function.owner is not None and function.name == "__init__" else []
    if owners and receiver is not None and isinstance(receiver.value, Instance):
        info = receiver.value.info
        owners += [info] if "__init__" not in info.methods else []
    named = [(function.name, function.node.decorator_list)] if not owners else []
    named += [(info.name, info.node.decorator_list) for info in owners if info is not None]
    found = [_name_in(decorators, name) for name, decorators in named]
    return tuple(dict.fromkeys(name for name in found if name))


def _name_in(decorators: list[ast.expr], name: str) -> str | None:
    """The name that `@gin.configurable` gives, or the function's own; None without such a decorator."""
    for item in decorators:
        if last_name(item) not in ("configurable", "register"):
            continue
        if isinstance(item, ast.Call):
            given = [*item.args[:1], *(one.value for one in item.keywords if one.arg == "name")]
            if given and isinstance(given[0], ast.Constant):
                return str(given[0].value)
        return name
    return None


def set_by_gin(
    evaluator: Evaluator, names: tuple[str, ...], parameter: str, default: Binding | None, frame: Frame
) -> Binding | None:
    """What gin binds a parameter to that no call states; None where no gin file or binding sets it."""
    script = frame.chain()[0].module
    settings: list[FileSetting] = []
    may_be_default = True
    for name in names:
        found, is_open = evaluator.options.gin_values(name, parameter, script)
        settings += found
        may_be_default = may_be_default and is_open
    if not settings:
        return None
    alternatives = _alternatives(evaluator, settings, f"{names[0]}.{parameter}")
    if may_be_default:
        alternatives += (
            [Alternative(Unknown(f"{names[0]}.{parameter}, which a gin file must set"))]
            if default is None
            else [*evaluator.evaluate_binding(default, parameter)]
        )
    node = ast.copy_location(ast.Name(parameter, ast.Load()), frame.scope)
    frame.cache[node] = tuple(alternatives)
    return Binding(node, frame, is_setting=True)


def _alternatives(evaluator: Evaluator, settings: list[FileSetting], name: str) -> list[Alternative]:
    distinct = {repr(one.value): one for one in settings}
    if len(distinct) > MOST_VALUES:
        return [Alternative(Unknown(f"{name}, which {len(distinct)} settings state differently"))]
    differing: tuple[Mark, ...] = ()
    if len(distinct) > 1:
        first = next(iter(distinct.values()))
        files = ", ".join(list(dict.fromkeys(one.file for one in distinct.values()))[:3])
        differing = (Mark(first.file, first.line, f"setting '{name}' differs between {files}"),)
    found: list[Alternative] = []
    for one in distinct.values():
        value = one.value
        shown = f"@{value.name}" if isinstance(value, GinReference) else repr(value)
        mark = Mark(one.file, one.line, f"setting '{name}' is {shown}")
        if isinstance(value, GinReference):
            found.extend(item.noting(*differing, mark) for item in _referenced(evaluator, value, one))
        elif isinstance(value, Unreadable):
            found.append(Alternative(Unknown(f"{name} = {value.text}"), marks=(*differing, mark)))
        else:
            option = Option(name, value, has_default=True)
            found.append(Alternative(option, marks=(*differing, mark), origin="option"))
    return found


def _referenced(evaluator: Evaluator, reference: GinReference, setting: FileSetting) -> list[Alternative]:
    """The function or class that a reference names, or what calling it gives."""
    place, _, name = reference.name.rpartition(".")
    homes: list[tuple[ModuleInfo, str]] = []
    for module in evaluator.index.modules.values():
        defined = [*module.tree.body]
        for node in defined:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                continue
            if name in (node.name, _name_in(node.decorator_list, node.name)):
                homes.append((module, node.name))
    near = [(module, own) for module, own in homes if place and module.dotted.endswith(place)]
    found: list[Alternative] = []
    for module, own in near or homes:
        expression: ast.expr = ast.Name(own, ast.Load())
        if reference.is_call:
            expression = ast.Call(func=expression, args=[], keywords=[])
        ast.fix_missing_locations(ast.copy_location(expression, module.tree.body[0]))
        found.extend(evaluator.evaluate(expression, evaluator.module_frame(module)))
    return found or [Alternative(Unknown(f"@{reference.name} ({setting.file}:{setting.line})"))]
