"""Names through which a call can reach an environment's step: of functions, of their callers, and their other names."""

from __future__ import annotations

import ast

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.facts import loop_facts
from gapfloor.audit.reading.index import FunctionInfo, ModuleInfo, last_name

_FUNCTION_VALUES = ast.Name | ast.Attribute | ast.IfExp | ast.Dict | ast.Call
#: Calls that give a function back in another form.
MAPPING = frozenset({"vmap", "pmap", "jit", "partial"})
_WRAPPING = MAPPING | {"pjit", "compile", "function", "remote", "wraps"}


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
    plain = {item.name for item in module.functions.values() if item.owner is None} | set(module.imports)
    methods = {item.name for item in module.functions.values() if item.owner is not None}
    for node in module.order:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, _FUNCTION_VALUES):
            continue
        is_wrapped = isinstance(node.value, ast.Call)
        if is_wrapped and last_name(node.value) not in _WRAPPING:
            continue
        # A variable of the same name as some function is not that function.
        parts = list(ast.walk(node.value))
        meant = {part.id for part in parts if isinstance(part, ast.Name) and part.id in plain}
        meant |= {
            part.attr
            for part in parts
            if isinstance(part, ast.Attribute)
            and isinstance(part.value, ast.Name)
            and (part.value.id in module.imports or (is_wrapped and part.attr in methods))
        }
        meant -= {"step", "step_async", "act", *_WRAPPING}
        if meant:
            found += [(last_name(target), meant) for target in node.targets if last_name(target)]
    return found


def handed_over(call: ast.Call) -> list[ast.expr]:
    """What a call is given, the branches of `jax.lax.switch(index, [first, second], ...)` one by one."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if last_name(call.func) != "switch":
        return given
    return [
        part for item in given for part in (item.elts if isinstance(item, ast.List | ast.Tuple) else [item])
    ]


def method_of(call: ast.Call) -> ast.Attribute | None:
    """The method that is called, also over a batch: `jax.vmap(env.reset_to_level, ...)(keys, levels)`."""
    function = call.func
    if isinstance(function, ast.Call) and last_name(function.func) in MAPPING and function.args:
        function = function.args[0]
    return function if isinstance(function, ast.Attribute) else None


def maps_step(call: ast.Call) -> bool:
    """Whether a call maps an environment's step over a batch: `jax.vmap(env.step, ...)`."""
    first = call.args[0] if call.args else None
    return last_name(call.func) in MAPPING and isinstance(first, ast.Attribute) and first.attr == "step"


def _called_names(function: FunctionInfo) -> set[str]:
    names = {last_name(call.func) for call in function.calls}
    if any(isinstance(call.func, ast.Call) and maps_step(call.func) for call in function.calls):
        names.add("step")
    # A function that is handed to another process, or to a scan, is called there.
    inner = {item.name for item in function.module.functions.values() if item.outer is function}
    for call in function.calls:
        handed = {last_name(item) for item in handed_over(call) if isinstance(item, ast.Name | ast.Attribute)}
        # `step` is mostly a number or an environment's method, unless the function defines one of its own.
        names |= handed - ({"step", "step_async", "act"} - inner)
    if "remote" in names:
        names |= {
            last_name(call.func.value) for call in function.calls if isinstance(call.func, ast.Attribute)
        }
    return names
