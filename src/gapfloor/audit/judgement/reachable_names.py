"""Names through which a call can reach an environment's step: of functions, of their callers, and their other names."""

from __future__ import annotations

import ast

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.facts import loop_facts
from gapfloor.audit.reading.index import FunctionInfo, ModuleInfo, last_name

_FUNCTION_VALUES = ast.Name | ast.Attribute | ast.IfExp | ast.Dict | ast.Call
_WRAPPING = frozenset({"partial", "jit", "pjit", "vmap", "pmap", "compile", "function", "remote", "wraps"})


def interesting_names(evaluator: Evaluator) -> set[str]:
    """Names through which a call can reach a step: those of functions that step, of their callers, and so on."""
    names = {"step", "step_async", "act", "rollout"} | {fact.name.rsplit(".", 1)[-1] for fact in loop_facts()}
    functions = [item for module in evaluator.index.modules.values() for item in module.functions.values()]
    called = {id(item): _called_names(item) for item in functions}
    replaced = {dotted.rsplit(".", 1)[-1] for dotted in evaluator.index.replaced}
    modules = evaluator.index.modules.values()
    other_names = [
        (alias, {dotted.rsplit(".", 1)[-1]}) for one in modules for alias, dotted in one.imports.items()
    ]
    other_names += [pair for one in modules for pair in _assigned_functions(one)]
    changed = True
    while changed:
        before = len(names)
        names |= {alias for alias, meant in other_names if meant & names}
        for function in functions:
            if called[id(function)] & names:
                names.add(function.name)
                if function.owner is not None and function.name in ("__init__", "__call__", "forward"):
                    names.add(function.owner.name)
        names |= replaced
        changed = len(names) > before
    return names


def _assigned_functions(module: ModuleInfo) -> list[tuple[str, set[str]]]:
    """Names that get a function as their value, with the functions that it can be: `play = partial(rollout, n=3)`."""
    found = []
    for node in module.order:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, _FUNCTION_VALUES):
            continue
        if isinstance(node.value, ast.Call) and last_name(node.value.func) not in _WRAPPING:
            continue
        parts = [node.value, *ast.walk(node.value)]
        meant = {last_name(part) for part in parts if isinstance(part, ast.Name | ast.Attribute)}
        meant -= {"step", "step_async", "act", ""}
        found += [(last_name(target), meant) for target in node.targets if last_name(target)]
    return found


def _called_names(function: FunctionInfo) -> set[str]:
    names = {last_name(call.func) for call in function.calls}
    # A function that is handed to another process, or to a scan, is called there.
    for call in function.calls:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        names |= {last_name(item) for item in given if isinstance(item, ast.Name | ast.Attribute)} - {
            "step",
            "step_async",
            "act",
        }
    if "remote" in names:
        names |= {
            last_name(call.func.value) for call in function.calls if isinstance(call.func, ast.Attribute)
        }
    return names
