"""Binding a call's arguments to a function's parameters: positional, keyword, starred and default ones."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gapfloor.audit.interpreter.gin import configurable_names, set_by_gin
from gapfloor.audit.interpreter.values import Alternative, Binding, Frame, Mapping
from gapfloor.audit.reading.index import FunctionInfo, last_name, own_nodes

if TYPE_CHECKING:
    from gapfloor.audit.interpreter.evaluator import Evaluator


def fits(function: FunctionInfo, call: ast.Call) -> bool:
    """Whether a method could take the arguments of a call at all."""
    arguments = function.node.args
    names = [arg.arg for arg in [*arguments.posonlyargs, *arguments.args]]
    if function.owner is not None and not function.has_decorator("staticmethod"):
        names = names[1:]
    if arguments.vararg is None and len(call.args) > len(names):
        return False
    known = {*names, *(arg.arg for arg in arguments.kwonlyargs)}
    if arguments.kwarg is None and any(
        keyword.arg is not None and keyword.arg not in known for keyword in call.keywords
    ):
        return False
    if any(isinstance(item, ast.Starred) for item in call.args) or any(
        item.arg is None for item in call.keywords
    ):
        return True
    required = names[: len(names) - len(arguments.defaults)]
    given = {keyword.arg for keyword in call.keywords}
    return all(name in given for name in required[len(call.args) :])


def argument(call: ast.Call, name: str | None, position: int | None) -> ast.expr | None:
    """The expression given for a parameter, by keyword or by position."""
    for keyword in call.keywords:
        if name is not None and keyword.arg == name:
            return keyword.value
    if position is not None and len(call.args) > position:
        return call.args[position]
    return None


def bind(
    evaluator: Evaluator,
    function: FunctionInfo,
    call: ast.Call | None,
    caller: Frame,
    receiver: Alternative | None,
    parent: Frame | None,
    preset: tuple[tuple[str, Binding], ...] = (),
) -> Frame:
    """A frame for calling `function` at `call`: positional, keyword, starred and default arguments."""
    frame = Frame(
        module=function.module,
        function=function,
        # The conditions of the receiver hold for the call's result; inside, `self` is just the object.
        receiver=Alternative(receiver.value) if receiver is not None else None,
        parent=parent,
        caller=caller,
        call=call,
        depth=caller.depth + 1,
    )
    arguments = function.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    is_bound = function.owner is not None and not function.has_decorator("staticmethod")
    names = [arg.arg for arg in positional[1 if is_bound and positional else 0 :]]
    keyword_names = [*names, *(arg.arg for arg in arguments.kwonlyargs)]
    extra: dict[str, Binding] = {}
    starred = False
    for key, binding in preset:
        if key in keyword_names:
            frame.bindings[key] = binding
        else:
            starred = True
    if call is not None:
        for name, argument in zip(names, call.args, strict=False):
            if isinstance(argument, ast.Starred):
                starred = True
                break
            frame.bindings[name] = Binding(argument, caller)
        for key, binding in keyword_bindings(evaluator, call, caller):
            if key in keyword_names:
                frame.bindings[key] = binding
            elif key:
                extra[key] = binding
            else:
                starred = True
    home = parent if parent is not None else evaluator.module_frame(function.module)
    defaults: list[tuple[str, ast.expr | None]] = [
        *zip([arg.arg for arg in positional][::-1], list(arguments.defaults)[::-1], strict=False),
        *zip([arg.arg for arg in arguments.kwonlyargs], arguments.kw_defaults, strict=True),
    ]
    configurable = configurable_names(function, receiver)
    unset = [name for name in keyword_names if name not in frame.bindings]
    for name, default in defaults:
        if name not in frame.bindings and default is not None:
            # Behind an argument list that cannot be read, a default may be overridden.
            frame.bindings[name] = (
                Binding(None, None)
                if starred
                else Binding(default, home, is_default=True, is_setting=bool(configurable))
            )
    for name in unset if configurable and not starred else ():
        stated = set_by_gin(evaluator, configurable, name, frame.bindings.get(name), frame)
        if stated is not None:
            frame.bindings[name] = stated
    if arguments.kwarg is not None and call is not None:
        node = _mapping_node(arguments.kwarg)
        frame.bindings[arguments.kwarg.arg] = Binding(node, frame)
        frame.cache[node] = (Alternative(Mapping(extra, is_open=starred)),)
    return frame


def _mapping_node(argument: ast.arg) -> ast.expr:
    """Stands for a `**kwargs` parameter: an expression whose value is put into the frame's cache."""
    kept: ast.expr | None = getattr(argument, "_mapping_node", None)
    if kept is None:
        kept = ast.copy_location(ast.Name(argument.arg, ast.Load()), argument)
        argument._mapping_node = kept  # type: ignore[attr-defined]
    return kept


def changes_of_mapping(name: str, scope: ast.AST) -> tuple[dict[str, ast.expr | None], bool]:
    """The keys that a scope assigns in the mapping `name`, and whether it changes it in ways that cannot be read.

    A key that is assigned once, under no condition, comes with its expression; the others come with None.
    """
    keys: dict[str, ast.expr | None] = {}
    is_open = False
    for node in own_nodes(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                key = _key_of(target, name)
                if key is not None:
                    keys[key] = node.value if key not in keys and node in getattr(scope, "body", ()) else None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            if last_name(node.value) == name and _key_of(node, name) is None:
                is_open = True
            if isinstance(node.ctx, ast.Del) and _key_of(node, name) is not None:
                keys[str(_key_of(node, name))] = None
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and last_name(node.func.value) == name
        ):
            is_open = is_open or node.func.attr in ("update", "setdefault", "pop", "clear")
        elif isinstance(node, ast.AugAssign) and last_name(node.target) == name:
            is_open = True
    return keys, is_open


def values_of_unknown_keys(name: str, scope: ast.AST, *, known: set[str]) -> list[ast.expr] | None:
    """What a scope puts into the mapping `name` under keys that are not `known`; None where that cannot be read."""
    found: list[ast.expr] = []
    for node in own_nodes(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Subscript) and last_name(target.value) == name:
                    key = _key_of(target, name)
                    if key is None or key not in known:
                        found.append(node.value)
                elif name in names_stored(target):
                    return None
        elif (isinstance(node, ast.AugAssign | ast.For) and name in names_stored(node.target)) or (
            isinstance(node, ast.Attribute)
            and node.attr in ("update", "setdefault")
            and last_name(node.value) == name
        ):
            return None
    return found


def names_stored(target: ast.AST) -> set[str]:
    """The names inside whose items an unpacking or augmented assignment stores."""
    return {
        last_name(node.value)
        for node in ast.walk(target)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    }


def is_filled_elsewhere(name: str, scope: ast.AST, *, is_empty: bool) -> bool:
    """Whether a mapping is handed to code that puts something into it: `exec`, or any call while it is empty."""
    for node in own_nodes(scope):
        if not isinstance(node, ast.Call):
            continue
        called = last_name(node.func)
        fills = called in ("exec", "eval") or (
            is_empty and called not in ("len", "print", "dict", "str", "bool")
        )
        given = [*node.args, *(item.value for item in node.keywords if item.arg is not None)]
        if fills and any(isinstance(item, ast.Name) and item.id == name for item in given):
            return True
    return False


def _key_of(target: ast.AST, name: str) -> str | None:
    if not isinstance(target, ast.Subscript) or last_name(target.value) != name:
        return None
    key = target.slice
    return str(key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str | int) else None


def additions_to_sequence(name: str, scope: ast.AST) -> list[ast.expr] | None:
    """What a scope appends to the list `name`; None when it changes the list in a way that cannot be read."""
    found: list[ast.expr] = []
    for node in own_nodes(scope):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Store)
            and last_name(node.value) == name
        ):
            return None
        if isinstance(node, ast.AugAssign) and last_name(node.target) == name:
            return None
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if last_name(node.func.value) != name:
            continue
        if node.func.attr in ("append", "appendleft") and len(node.args) == 1:
            found.append(node.args[0])
        elif node.func.attr in ("extend", "insert", "pop", "clear", "remove", "sort", "reverse"):
            return None
    return found


def keyword_bindings(evaluator: Evaluator, call: ast.Call, caller: Frame) -> list[tuple[str, Binding]]:
    """The keywords of a call; a `**mapping` that cannot be read appears under the empty name."""
    found: list[tuple[str, Binding]] = []
    for keyword in call.keywords:
        if keyword.arg is not None:
            found.append((keyword.arg, Binding(keyword.value, caller)))
            continue
        alternatives = evaluator.evaluate(keyword.value, caller)
        if len(alternatives) == 1 and isinstance(alternatives[0].value, Mapping):
            found.extend(alternatives[0].value.items.items())
            if alternatives[0].value.is_open:
                found.append(("", Binding(None, None)))
        else:
            found.append(("", Binding(None, None)))
    return found
