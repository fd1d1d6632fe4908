"""Evaluations that RLlib runs itself, from configurations that are written in Python.

Two forms are read: a dictionary with `evaluation_interval`, and the methods of an algorithm's configuration object
(`PPOConfig().environment(...).evaluation(evaluation_config={"explore": False})`). What stays out of sight is unknown.
Source: ray-project/ray @324a998 rllib/algorithms/algorithm_config.py, AlgorithmConfig.environment, .env_runners,
.evaluation, .overrides, and AlgorithmConfig.__init__ (explore=True, evaluation_interval=None).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.values import Alternative, Frame, KnownValue, Mapping, Option
from gapfloor.audit.judgement.explore import is_unit_test
from gapfloor.audit.judgement.paths import EvaluationPath
from gapfloor.audit.judgement.rllib import Experiment, evaluation_path
from gapfloor.audit.reading.index import ModuleInfo, last_name, own_nodes
from gapfloor.audit.reading.settings import FileSetting, Unreadable

_CONFIG = re.compile(r"([A-Za-z0-9]+)Config$")
_METHODS = frozenset({"environment", "evaluation", "exploration", "env_runners", "rollouts"})
_DEEPEST = 3


def rllib_code_paths(evaluator: Evaluator, *, only: str | None = None) -> list[EvaluationPath]:
    """One path for each configuration in Python code whose evaluation RLlib runs."""
    found = []
    for module in evaluator.index.modules.values():
        if only is not None and module.path not in evaluator.index.reach(evaluator.index.modules[only]):
            continue
        if is_unit_test(module) or not any(one.split(".")[0] == "ray" for one in module.imports.values()):
            continue
        for scope in (module.tree, *module.functions):
            frame = _frame(evaluator, module, scope)
            for experiment in (*_dictionaries(evaluator, frame), *_builders(evaluator, frame)):
                interval = experiment.value("config", "evaluation_interval")
                if experiment.has("config", "evaluation_interval") and interval not in (None, 0):
                    found.append(evaluation_path(experiment))
    return found


def _frame(evaluator: Evaluator, module: ModuleInfo, scope: ast.AST) -> Frame:
    function = module.functions.get(scope)
    return evaluator.module_frame(module) if function is None else Frame(module=module, function=function)


def _dictionaries(evaluator: Evaluator, frame: Frame) -> Iterator[Experiment]:
    for node in own_nodes(frame.scope):
        if not isinstance(node, ast.Dict) or "evaluation_interval" not in _keys(node):
            continue
        settings = dict(
            _of_mapping(evaluator, evaluator.evaluate(node, frame), frame, node.lineno, ("config",))
        )
        name = _assigned_to(node, frame)
        users = [
            one for one in own_nodes(frame.scope) if isinstance(one, ast.Call) and _uses(one, node, name)
        ]
        for call in users:
            settings |= dict(_algorithm(call, frame))
        if ("config", "env") in settings:
            settings[("env",)] = settings.pop(("config", "env"))
        yield Experiment(
            frame.module.path, {key: one for key, (one, _) in settings.items()}, _stated(settings)
        )


def _builders(evaluator: Evaluator, frame: Frame) -> Iterator[Experiment]:
    """The calls on the one configuration object of a scope; of several it is not known which call belongs to which."""
    nodes = [one for one in own_nodes(frame.scope) if isinstance(one, ast.Call)]
    makers = [one for one in nodes if _CONFIG.search(last_name(one.func)) and not one.keywords]
    used = [one for one in nodes if isinstance(one.func, ast.Attribute) and one.func.attr in _METHODS]
    if not makers or not any(last_name(one.func) == "evaluation" for one in used):
        return
    settings: dict[tuple[str, ...], tuple[FileSetting, str]] = {}
    path = frame.module.path
    if len(makers) == 1:
        match = _CONFIG.search(last_name(makers[0].func))
        assert match is not None
        settings[("run",)] = FileSetting(("run",), match[1], path, makers[0].lineno), "literal"
    for call in used:
        is_environment = last_name(call.func) == "environment"
        if is_environment and call.args:
            settings |= dict(_of_value(evaluator, call.args[0], frame, ("env",)))
        for keyword in call.keywords:
            if keyword.arg is None:
                unknown = FileSetting(("config", "explore"), Unreadable("**"), path, call.lineno)
                settings[("config", "explore")] = unknown, ""
                continue
            keys = ("env",) if is_environment and keyword.arg == "env" else ("config", keyword.arg)
            settings |= dict(_of_value(evaluator, keyword.value, frame, keys))
    yield Experiment(path, {key: one for key, (one, _) in settings.items()}, _stated(settings))


def _stated(settings: dict[tuple[str, ...], tuple[FileSetting, str]]) -> frozenset[tuple[str, ...]]:
    """The settings that the code itself states, as no user can set them."""
    return frozenset(key for key, (_, origin) in settings.items() if origin in ("literal", "argument"))


def _of_value(
    evaluator: Evaluator, node: ast.expr, frame: Frame, keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[FileSetting, str]]]:
    """The settings below one expression: a plain value, a dictionary, or `SomeConfig.overrides(...)`."""
    if isinstance(node, ast.Call) and last_name(node.func) == "overrides":
        for keyword in node.keywords:
            yield from _of_value(evaluator, keyword.value, frame, (*keys, keyword.arg or "**"))
        return
    found = evaluator.evaluate(node, frame)
    is_group = keys[-1] in ("evaluation_config", "env_config")
    is_absent = all(isinstance(item.value, KnownValue) and item.value.value is None for item in found)
    if any(isinstance(item.value, Mapping) for item in found) or (is_group and not is_absent):
        yield from _of_mapping(evaluator, found, frame, node.lineno, keys)
        return
    yield keys, _plain(found, frame, node.lineno, keys)


def _of_mapping(
    evaluator: Evaluator, found: tuple[Alternative, ...], frame: Frame, line: int, keys: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[FileSetting, str]]]:
    mapping = found[0].value if len(found) == 1 else None
    if not isinstance(mapping, Mapping) or mapping.is_open or len(keys) > _DEEPEST:
        # A part that cannot be read may hold anything, also the flag.
        for name in ("explore", "env", "env_config"):
            yield (*keys, name), (FileSetting((*keys, name), Unreadable("?"), frame.module.path, line), "")
    if not isinstance(mapping, Mapping) or len(keys) > _DEEPEST:
        return
    for name, binding in mapping.items.items():
        if binding.expression is not None and binding.frame is not None:
            yield from _of_value(evaluator, binding.expression, binding.frame, (*keys, name))


def _plain(
    found: tuple[Alternative, ...], frame: Frame, line: int, keys: tuple[str, ...]
) -> tuple[FileSetting, str]:
    value = found[0].value if len(found) == 1 else None
    origin = found[0].origin if len(found) == 1 else ""
    if isinstance(value, KnownValue):
        return FileSetting(keys, value.value, frame.module.path, line), origin
    if isinstance(value, Option) and value.has_default:
        return FileSetting(keys, value.default, frame.module.path, line), origin
    return FileSetting(keys, Unreadable("?"), frame.module.path, line), ""


def _keys(node: ast.Dict) -> set[str]:
    return {str(key.value) for key in node.keys if isinstance(key, ast.Constant)}


def _assigned_to(node: ast.Dict, frame: Frame) -> str | None:
    parent = frame.module.parents.get(node)
    is_name = isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name)
    return parent.targets[0].id if is_name else None  # type: ignore[union-attr]


def _uses(call: ast.Call, node: ast.Dict, name: str | None) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(one is node or (isinstance(one, ast.Name) and one.id == name) for one in given)


def _algorithm(call: ast.Call, frame: Frame) -> Iterator[tuple[tuple[str, ...], tuple[FileSetting, str]]]:
    """The algorithm and the environment that a call next to the dictionary names: `tune.run("PPO", config=config)`."""
    first = call.args[0] if call.args else None
    place = (frame.module.path, call.lineno)
    if last_name(call.func) in ("run", "Tuner", "run_experiments") and first is not None:
        is_text = isinstance(first, ast.Constant)
        name = str(first.value) if isinstance(first, ast.Constant) else last_name(first)
        if is_text or name:
            yield ("run",), (FileSetting(("run",), _short(name), *place), "literal")
    elif re.search(r"Trainer$|^[A-Z0-9]{2,}$", last_name(call.func)):
        yield ("run",), (FileSetting(("run",), _short(last_name(call.func)), *place), "literal")
    for keyword in call.keywords:
        if keyword.arg == "env":
            shown = ast.unparse(keyword.value)
            yield ("env",), (FileSetting(("env",), shown, *place), "literal")


def _short(name: str) -> str:
    return name.removesuffix("Trainer").removesuffix("Algorithm")
