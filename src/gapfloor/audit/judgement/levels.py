"""Level sets: which levels an environment plays, as its constructor says, and whether two sets differ.

"Held out" is decided here, by comparing sets, never by what a variable is called.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

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
    Instance,
    KnownValue,
    Mapping,
    Mark,
    Namespace,
    Option,
    Unknown,
    describe,
    is_recorded,
)
from gapfloor.audit.judgement.explore import call_with
from gapfloor.audit.judgement.ranks import depends_on_rank
from gapfloor.audit.reading.index import last_name, own_nodes

_LEVEL_COUNT = re.compile(r"^(num|n|nr|number_of)?_?(train_)?levels?$|^num_levels$|^nlev$", re.IGNORECASE)
_ID_KEYWORDS = ("id", "env_id", "task_id")
#: Parameters that do not choose what is played: seeds, numbers of copies, pictures, logs.
_INCIDENTAL = re.compile(
    r"seed|render|rank|device|log|num_envs|n_envs|num_processes|num_workers|gamma|visual|video|record|monitor|verbose|"
    r"worker|index|save|path|dir$|directory|realtime|real_time|async|context|port|reward|norm|clip|stack|skip|gray|size|"
    r"allow_early|life|capture|run_name|max_episode|time_limit|wrapper|ret$|ob$|writer|env_num|nproc|^idx$",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r"split|^mode$|train|test|eval|valid|held|phase|dataset|partition|tasks?$|levels?$|level_set|fold|distribution",
    re.IGNORECASE,
)
_SAVED = ("saved",)


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
    inner = _inner_environments(evaluator, environment)
    if inner:
        found = [level for one in inner for level in level_sets(evaluator, one)]
        return _distinct([replace(level, marks=(made, *level.marks)) for level in found])
    alternatives = _count_alternatives(evaluator, environment)
    if alternatives is None:
        return [_without_levels(evaluator, environment, made)]
    start, start_mark = _start(evaluator, environment)
    found = []
    for item in alternatives:
        by_rank = any(depends_on_rank(evaluator, guard.test, guard.frame, 4) for guard in item.guards)
        if not by_rank and any(_is_false(evaluator, guard) for guard in item.guards):
            continue
        found.append(_level_set(item, start, (made, *start_mark), is_worker_choice=by_rank))
    return _distinct(found)


def _inner_environments(evaluator: Evaluator, environment: Environment) -> list[Environment]:
    """The environments that a class of the repository makes in its constructor and plays through."""
    if environment.info is None:
        return []
    init = evaluator.objects.method(environment.info, "__init__")
    if init is None or environment.frame.depth > 12:
        return []
    receiver = Alternative(Instance(environment.info, environment.call, environment.frame, None))
    frame = evaluator.bound_frame(init, environment.call, environment.frame, receiver, None)
    found: dict[int, Environment] = {}
    for node in own_nodes(init.node):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            for item in evaluator.evaluate(node.value, frame):
                if isinstance(item.value, Environment) and item.value.info is not environment.info:
                    found[id(item.value.call)] = item.value
        elif isinstance(node, ast.Call) and last_name(node.func) in ("Process", "Thread"):
            for made in _made_by_worker(evaluator, node, frame):
                found[id(made.call)] = made
    return list(found.values())


def _made_by_worker(evaluator: Evaluator, start: ast.Call, frame: Frame) -> list[Environment]:
    """The environments that a worker process makes for the vector environment that starts it."""
    target = next((item.value for item in start.keywords if item.arg == "target"), None)
    found: list[Environment] = []
    if target is None:
        return found
    for item in evaluator.evaluate(target, frame):
        if not isinstance(item.value, Callable):
            continue
        worker = item.value.function
        inner = evaluator.bound_frame(
            worker, call_with(start, target), frame, item.value.receiver, item.value.parent
        )
        for node in own_nodes(worker.node):
            if isinstance(node, ast.Assign):
                made = evaluator.evaluate(node.value, inner)
                found.extend(one.value for one in made if isinstance(one.value, Environment))
    return found


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
    """An environment without a level count is known by what it is: its name and what its constructor is given."""
    given = _given_arguments(evaluator, environment)
    if given is None or (environment.info is None and not given):
        return EnvironmentLevels("unknown", (), "not known", (made,), ())
    return EnvironmentLevels("none", (environment.name, *sorted(given.items())), "no levels", (made,), ())


def _given_arguments(evaluator: Evaluator, environment: Environment) -> dict[str, object] | None:
    """What decides which environment is made, by parameter; None when the name of the environment is not known."""
    found: dict[str, object] = {}
    fact = find_environment(environment.name)
    keywords, is_open = given_keywords(evaluator, environment, fact)
    binding = _id_of(environment, keywords)
    bindings = dict(keywords)
    if environment.info is None:
        if binding is not None:
            bindings["id"] = binding
        for number, item in enumerate(environment.call.args[1:], start=2):
            bindings[f"argument {number}"] = Binding(item, environment.frame)
    else:
        bindings = _constructor_bindings(evaluator, environment)
    for name, one in bindings.items():
        if not _INCIDENTAL.search(name):
            found[name] = _symbol(evaluator, one, name)
    if is_open:
        found["further keywords"] = describe(environment.call)
    is_named = environment.info is not None or found.get("id", ("unknown",))[0] != "unknown"  # type: ignore[index]
    return found if is_named else None


def _constructor_bindings(evaluator: Evaluator, environment: Environment) -> dict[str, Binding]:
    assert environment.info is not None
    init = evaluator.objects.method(environment.info, "__init__")
    if init is None:
        return {}
    receiver = Alternative(Instance(environment.info, environment.call, environment.frame, None))
    frame = evaluator.bound_frame(init, environment.call, environment.frame, receiver, None)
    return dict(frame.bindings)


def _symbol(evaluator: Evaluator, binding: Binding, name: str) -> tuple[object, ...]:
    """An argument as far as it can be compared: a value, a setting, or the words in which it is written."""
    values = evaluator.evaluate_binding(binding, name)
    live = [item for item in values if not evaluator.is_unlikely(item)] or list(values)
    symbols: set[tuple[object, ...]] = set()
    for item in live:
        value = item.value
        if isinstance(value, KnownValue):
            symbols.add(("value", repr(value.value)))
        elif isinstance(value, Option):
            default = repr(value.default) if value.has_default else None
            symbols.add(("setting", value.name, default))
        elif isinstance(value, Namespace | Instance | Mapping):
            symbols.add(("object", type(value).__name__))
        elif is_recorded(value) and binding.expression is not None:
            is_other = _SPLIT.search(describe(binding.expression)) is not None
            symbols.add(("unknown",) if is_other else _SAVED)
        elif isinstance(value, Unknown) and re.search(r"[.\[(]", value.text):
            symbols.add(("text", value.text))
        else:
            symbols.add(("unknown",))
    return symbols.pop() if len(symbols) == 1 else ("unknown",)


def _start(evaluator: Evaluator, environment: Environment) -> tuple[object, tuple[Mark, ...]]:
    fact = find_environment(environment.name)
    keywords, _ = given_keywords(evaluator, environment, fact)
    binding = keywords.get(fact.start if fact else "start_level")
    if binding is None:
        return 0, ()
    values = evaluator.evaluate_binding(binding, "start_level")
    if len(values) == 1 and isinstance(values[0].value, KnownValue):
        return values[0].value.value, ()
    if len(values) == 1 and isinstance(values[0].value, Option) and values[0].value.has_default:
        return values[0].value.default, ()
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
    if (
        isinstance(value, Option)
        and value.has_default
        and isinstance(value.default, int)
        and value.default > 1
    ):
        text = f"option {value.name} (default {value.default}) from {start}"
        key = (value.default, start)
        return EnvironmentLevels("finite", key, text, everything, item.guards, is_worker_choice)
    # A count that is 0 by default is there to be set: which levels the paper's command plays is not in the code.
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
    """Whether the test levels are held out from training: False when training plays them too, None when not known.

    The full distribution is held out from a finite training set; a range is held out when it shares no level with it.
    """
    if "unknown" in (test.kind, train.kind):
        return None
    if test.kind == train.kind == "none":
        return _compare_arguments(test.key, train.key)
    if "none" in (test.kind, train.kind):
        return None
    if train.kind == "full":
        return False if test.kind in ("full", "finite") else None
    if test.kind == "full":
        return True
    if (test.kind, test.key) == (train.kind, train.key):
        return False
    return _compare_ranges(test.key, train.key)


def _compare_ranges(test: tuple[object, ...], train: tuple[object, ...]) -> bool | None:
    numbers = [*test[:2], *train[:2]]
    if len(numbers) != 4 or not all(isinstance(item, int) for item in numbers):
        return None
    count, start, train_count, train_start = (int(item) for item in numbers)  # type: ignore[call-overload]
    if 1 in (count, train_count):
        return None  # a single level is what code gives that changes the level itself, episode by episode
    if train_start <= start and start + count <= train_start + train_count:
        return False
    if start >= train_start + train_count or start + count <= train_start:
        return True
    return None


def _compare_arguments(test: tuple[object, ...], train: tuple[object, ...]) -> bool | None:
    """Two environments without level counts: the same constructor with the same arguments plays the same levels."""
    if test[0] != train[0]:
        return None
    ours: dict[str, tuple[object, ...]] = dict(test[1:])  # type: ignore[arg-type]
    theirs: dict[str, tuple[object, ...]] = dict(train[1:])  # type: ignore[arg-type]
    different = _different(ours, theirs)
    if not different:
        return False
    if all(ours.get(name, ("absent",))[0] in ("value", "setting", "absent") for name in different):
        splits = [name for name in different if _SPLIT.search(name)]
        values = [(ours.get(name, ("absent",))[0], theirs.get(name, ("absent",))[0]) for name in splits]
        if splits and len(splits) == len(different) and all(pair == ("value", "value") for pair in values):
            return True
    return None


def _different(ours: dict[str, tuple[object, ...]], theirs: dict[str, tuple[object, ...]]) -> list[str]:
    """The parameters that are not surely given the same; what is stored with the weights is what training was given."""
    found = []
    for name in {*ours, *theirs}:
        one, other = ours.get(name, ("absent",)), theirs.get(name, ("absent",))
        is_restored = one == _SAVED and other[0] in ("setting", "text", "object", "saved")
        if not is_restored and (one != other or one == ("unknown",)):
            found.append(name)
    return found


def comes_from_one_factory(evaluator: Evaluator, test: Environment, train: Environment) -> bool:
    """Whether one function of the repository makes both environments and is given the same for both."""
    theirs = {frame.function: frame for frame in train.frame.chain() if frame.function is not None}
    for frame in test.frame.chain():
        function = frame.function
        if function is None or function.owner is not None or function.outer is not None:
            continue
        if function in theirs and function.name != "main":
            return not _different(_symbols(evaluator, frame), _symbols(evaluator, theirs[function]))
    return False


def _symbols(evaluator: Evaluator, frame: Frame) -> dict[str, tuple[object, ...]]:
    return {
        name: _symbol(evaluator, binding, name)
        for name, binding in frame.bindings.items()
        if not _INCIDENTAL.search(name)
    }


def is_made_alike(one: Environment, other: Environment) -> bool:
    """Whether two environments are the same object, or come from two calls in one function that read the same."""
    if one.call is other.call and one.frame is other.frame:
        return True
    ours = [(frame.caller, frame.call) for frame in one.frame.chain()[1:]] + [(one.frame, one.call)]
    theirs = [(frame.caller, frame.call) for frame in other.frame.chain()[1:]] + [(other.frame, other.call)]
    for (frame, call), (other_frame, other_call) in zip(ours, theirs, strict=False):
        if frame is not other_frame:
            return False
        if call is not other_call:
            return _reads_the_same(call, other_call)
    return False


def _reads_the_same(one: ast.AST | None, other: ast.AST | None) -> bool:
    if not isinstance(one, ast.Call) or not isinstance(other, ast.Call):
        return False
    if ast.dump(one.func) != ast.dump(other.func) or len(one.args) != len(other.args):
        return False
    pairs = [
        *zip(one.args, other.args, strict=True),
        *_pairs_of_keywords(one, other),
    ]
    return all(
        (first is not None and second is not None and ast.dump(first) == ast.dump(second))
        or any(item is not None and _INCIDENTAL.search(describe(item)) for item in (first, second))
        for first, second in pairs
    )


def _pairs_of_keywords(one: ast.Call, other: ast.Call) -> list[tuple[ast.expr | None, ast.expr | None]]:
    ours = {item.arg: item.value for item in one.keywords}
    theirs = {item.arg: item.value for item in other.keywords}
    names = [name for name in {*ours, *theirs} if name is None or not _INCIDENTAL.search(name)]
    return [(ours.get(name), theirs.get(name)) for name in names]


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
