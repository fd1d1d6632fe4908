"""Level sets: which levels an environment plays, as its constructor says, and whether two sets differ.

"Held out" is decided here, by comparing sets, never by what a variable is called.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from gapfloor.audit.interpreter.binding import argument, keyword_bindings
from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.facts import EnvironmentFact, find_environment
from gapfloor.audit.interpreter.options import literal
from gapfloor.audit.interpreter.values import (
    Alternative,
    Binding,
    Callable,
    Environment,
    Frame,
    Guard,
    KnownValue,
    Mapping,
    Mark,
    Option,
    Unknown,
    describe,
)
from gapfloor.audit.reading.index import names_in

_LEVEL_COUNT = re.compile(r"^(num|n|nr|number_of)?_?(train_)?levels?$|^num_levels$|^nlev$", re.IGNORECASE)
_ID_KEYWORDS = ("id", "env_id", "task_id")
_RANK = frozenset(
    {"Get_rank", "get_rank", "rank", "local_rank", "world_rank", "process_index", "worker_index"}
)


@dataclass(frozen=True, eq=False)
class EnvironmentLevels:
    """One set of levels: `full` is the whole distribution, `finite` a range, `option` what a user sets."""

    kind: str
    key: tuple[object, ...]
    text: str
    marks: tuple[Mark, ...]
    guards: tuple[Guard, ...]
    is_worker_choice: bool = False
    """Whether the choice between sets is made by the process's rank."""


def level_sets(evaluator: Evaluator, environment: Environment) -> list[EnvironmentLevels]:
    """The level sets an environment can be made with; those that settings at their defaults rule out are dropped."""
    made = Mark(environment.frame.module.path, environment.call.lineno, "environment made")
    alternatives = _count_alternatives(evaluator, environment)
    if alternatives is None:
        return [_without_levels(evaluator, environment, made)]
    start, start_mark = _start(evaluator, environment)
    found: list[EnvironmentLevels] = []
    for item in alternatives:
        by_rank = any(_depends_on_rank(evaluator, guard.test, guard.frame, 4) for guard in item.guards)
        if not by_rank and any(_is_false(evaluator, guard) for guard in item.guards):
            continue
        found.append(_level_set(item, start, (made, *start_mark), is_worker_choice=by_rank))
    return _distinct(found)


def _count_alternatives(evaluator: Evaluator, environment: Environment) -> tuple[Alternative, ...] | None:
    call, frame = environment.call, environment.frame
    fact = find_environment(environment.name)
    names = {fact.levels} if fact else set()
    mapping, is_open = given_keywords(evaluator, environment, fact)
    for name, binding in mapping.items():
        if name in names or (fact is None and _LEVEL_COUNT.match(name)):
            return evaluator.evaluate_binding(binding, name)
    if fact is not None:
        is_levelled = fact.default_levels == 0 or "procgen" in _identity(environment, mapping).lower()
        if is_levelled and (is_open or _has_a_fixed_level(evaluator, mapping)):
            return (Alternative(Unknown("the level count")),)
        if is_levelled:
            mark = Mark(frame.module.path, call.lineno, "no level count given: the full distribution")
            return (Alternative(KnownValue(0), marks=(mark,), origin="default"),)
        return None
    return _read_by_class(evaluator, environment)


def given_keywords(
    evaluator: Evaluator, environment: Environment, fact: EnvironmentFact | None
) -> tuple[dict[str, Binding], bool]:
    """The environment's keywords as far as they can be read, and whether there may be more of them."""
    call, frame = environment.call, environment.frame
    given = keyword_bindings(evaluator, call, frame)
    found = {name: binding for name, binding in given if name}
    is_open = len(found) < len(given)
    if fact is None or fact.keywords_in is None:
        return found, is_open
    mapping = argument(call, fact.keywords_in, fact.keywords_position)
    if mapping is None:
        return {}, is_open
    values = evaluator.evaluate(mapping, frame)
    if len(values) == 1 and isinstance(values[0].value, Mapping):
        return dict(values[0].value.items), values[0].value.is_open
    return {}, True


def _has_a_fixed_level(evaluator: Evaluator, keywords: dict[str, Binding]) -> bool:
    """ProcGen's exploration mode plays one level of its own choice; a mode that is not known may be that one."""
    binding = keywords.get("distribution_mode")
    if binding is None:
        return False
    modes = evaluator.evaluate_binding(binding, "distribution_mode")
    return any(isinstance(item.value, KnownValue) and item.value.value == "exploration" for item in modes)


def _read_by_class(evaluator: Evaluator, environment: Environment) -> tuple[Alternative, ...] | None:
    """An environment of the repository may read its level count from a setting instead of an argument."""
    if environment.info is None:
        return None
    module = environment.info.module
    for node in module.order:
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and _LEVEL_COUNT.match(node.attr)
        ):
            found = evaluator.evaluate(node, evaluator.module_frame(module))
            if any(isinstance(item.value, KnownValue | Option) for item in found):
                mark = Mark(module.path, node.lineno, f"level count read from {describe(node)}")
                return tuple(item.noting(mark) for item in found)
    return None


def _id_of(environment: Environment, keywords: dict[str, Binding]) -> Binding | None:
    """Which environment is made: the first argument, unless a keyword says it."""
    for name in _ID_KEYWORDS:
        given = argument(environment.call, name, None)
        if given is not None:
            return Binding(given, environment.frame)
        if name in keywords:
            return keywords[name]
    fact = find_environment(environment.name)
    if environment.call.args and (fact is None or fact.factory_position in (None, 0)):
        return Binding(environment.call.args[0], environment.frame)
    return None


def _identity(environment: Environment, keywords: dict[str, Binding]) -> str:
    binding = _id_of(environment, keywords)
    if binding is None or binding.expression is None:
        return ""
    value = literal(binding.expression)
    return value if isinstance(value, str) else describe(binding.expression)


def _without_levels(evaluator: Evaluator, environment: Environment, made: Mark) -> EnvironmentLevels:
    """An environment that has no levels is known by what it is: a literal or a setting, else it is not known."""
    if environment.info is not None:
        return EnvironmentLevels("none", (environment.name,), "no levels", (made,), ())
    names: set[object] = set()
    keywords, _ = given_keywords(evaluator, environment, find_environment(environment.name))
    binding = _id_of(environment, keywords)
    if binding is not None:
        for item in evaluator.evaluate_binding(binding, "id"):
            if isinstance(item.value, KnownValue):
                names.add(item.value.value)
            elif isinstance(item.value, Option):
                names.add(("option", item.value.name))
            else:
                names.add(None)
    if len(names) != 1 or None in names:
        return EnvironmentLevels("unknown", (), "not known", (made,), ())
    return EnvironmentLevels("none", (environment.name, *names), "no levels", (made,), ())


def _start(evaluator: Evaluator, environment: Environment) -> tuple[object, tuple[Mark, ...]]:
    fact = find_environment(environment.name)
    keywords, _ = given_keywords(evaluator, environment, fact)
    binding = keywords.get(fact.start if fact else "start_level")
    if binding is None:
        return 0, ()
    values = evaluator.evaluate_binding(binding, "start_level")
    if len(values) == 1 and isinstance(values[0].value, KnownValue):
        return values[0].value.value, ()
    text = describe(binding.expression) if binding.expression is not None else "?"
    return text, ()


def _level_set(
    item: Alternative, start: object, marks: tuple[Mark, ...], *, is_worker_choice: bool
) -> EnvironmentLevels:
    value = item.value
    everything = (*marks, *item.marks)
    if isinstance(value, KnownValue) and value.value == 0 and value.value is not False:
        return EnvironmentLevels("full", (), "full distribution", everything, item.guards, is_worker_choice)
    if isinstance(value, KnownValue) and isinstance(value.value, int):
        text = f"{value.value} levels from {start}"
        return EnvironmentLevels(
            "finite", (value.value, start), text, everything, item.guards, is_worker_choice
        )
    if isinstance(value, Option):
        shown = f" (default {value.default})" if value.has_default else ""
        text = f"option {value.name}{shown} from {start}"
        return EnvironmentLevels(
            "option", (value.name, start), text, everything, item.guards, is_worker_choice
        )
    return EnvironmentLevels("unknown", (), "not known", everything, item.guards, is_worker_choice)


def _distinct(sets: list[EnvironmentLevels]) -> list[EnvironmentLevels]:
    found: dict[tuple[object, ...], EnvironmentLevels] = {}
    for item in sets:
        key = (item.kind, item.key)
        if key not in found or (item.is_worker_choice and not found[key].is_worker_choice):
            found[key] = item
    return list(found.values())


def differ(test: EnvironmentLevels, train: EnvironmentLevels) -> bool | None:
    """Whether two level sets differ; None when one is not known."""
    if "unknown" in (test.kind, train.kind):
        return None
    if test.kind == train.kind == "none":
        return None if test.key != train.key else False
    if "none" in (test.kind, train.kind):
        return None
    if test.kind != train.kind and "full" not in (test.kind, train.kind):
        return None  # a range against a setting: the setting may be that range
    if (test.kind, test.key) != (train.kind, train.key) and "full" not in (test.kind, train.kind):
        # A single level is what code gives that changes the seed itself, level by level.
        return None if 1 in (test.key[:1] + train.key[:1]) else True
    return (test.kind, test.key) != (train.kind, train.key)


def is_seeded(evaluator: Evaluator, environment: Environment) -> bool | None:
    """Whether the draw of levels is seeded by the constructor call."""
    fact = find_environment(environment.name)
    if fact is None or fact.default_levels is None:
        return None
    keywords, is_open = given_keywords(evaluator, environment, fact)
    binding = keywords.get(fact.seed)
    if binding is None:
        return None if is_open else False
    values = evaluator.evaluate_binding(binding, fact.seed)
    nothing = {isinstance(item.value, KnownValue) and item.value.value is None for item in values}
    return not nothing.pop() if len(nothing) == 1 else None


def _is_false(evaluator: Evaluator, guard: Guard) -> bool:
    known, _ = evaluator.truth(guard.test, guard.frame)
    return known is not None and known != guard.holds


def _depends_on_rank(evaluator: Evaluator, test: ast.AST, frame: Frame, depth: int) -> bool:
    """Whether a condition comes from the rank of the process, through names, arguments and functions."""
    if names_in(test) & _RANK:
        return True
    if depth == 0:
        return False
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            binding = frame.bindings.get(node.id)
            sources: list[tuple[ast.AST | None, Frame | None]] = []
            if binding is not None:
                sources.append((binding.expression, binding.frame))
            sources += [
                (definition.expression, frame)
                for definition in evaluator.definitions(frame.module, frame.scope).get(node.id, [])
                if definition.kind == "assign"
            ]
            for expression, home in sources:
                if (
                    expression is not None
                    and home is not None
                    and _depends_on_rank(evaluator, expression, home, depth - 1)
                ):
                    return True
        elif isinstance(node, ast.Call):
            for target in evaluator.evaluate(node.func, frame):
                if isinstance(target.value, Callable) and names_in(target.value.function.node) & _RANK:
                    return True
    return False


def rank_marks(evaluator: Evaluator, guards: tuple[Guard, ...]) -> list[Mark]:
    """The lines where a rank becomes a condition."""
    marks = []
    for guard in guards:
        if not _depends_on_rank(evaluator, guard.test, guard.frame, 4):
            continue
        marks.append(
            Mark(guard.frame.module.path, guard.test.lineno, f"worker chosen by: {describe(guard.test)}")
        )
        marks.extend(_rank_lines(evaluator, guard.test, guard.frame, 4))
    return marks


def _rank_lines(evaluator: Evaluator, test: ast.AST, frame: Frame, depth: int) -> list[Mark]:
    found: list[Mark] = []
    if depth == 0:
        return found
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            for definition in evaluator.definitions(frame.module, frame.scope).get(node.id, []):
                expression = definition.expression
                if definition.kind == "assign" and expression is not None and names_in(expression) & _RANK:
                    line = getattr(definition.statement, "lineno", 0)
                    found.append(Mark(frame.module.path, line, "the rank decides"))
            binding = frame.bindings.get(node.id)
            if binding is not None and binding.expression is not None and binding.frame is not None:
                found.extend(_rank_lines(evaluator, binding.expression, binding.frame, depth - 1))
        elif isinstance(node, ast.Call):
            for target in evaluator.evaluate(node.func, frame):
                if isinstance(target.value, Callable):
                    function = target.value.function
                    for inner in ast.walk(function.node):
                        if (
                            isinstance(inner, ast.Return)
                            and inner.value is not None
                            and names_in(inner.value) & _RANK
                        ):
                            found.append(Mark(function.module.path, inner.lineno, "the rank decides"))
    return found
