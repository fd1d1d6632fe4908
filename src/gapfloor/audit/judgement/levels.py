"""Level sets: which levels an environment plays, as its constructor says, and whether two sets differ.

"Held out" is decided here, by comparing sets, never by what a variable is called.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from gapfloor.audit.interpreter import classes
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.calls import argument, keyword_bindings
from gapfloor.audit.interpreter.facts import find_environment, pattern
from gapfloor.audit.interpreter.values import Alternative, Frame, Mark, describe
from gapfloor.audit.judgement.sites import Play
from gapfloor.audit.reading.index import arguments_of, last_name, names_in, own_nodes, plain_names_in

_LEVEL_COUNT = re.compile(r"^(num|n|nr|number_of)?_?(train_)?levels?$|^num_levels$|^nlev$", re.IGNORECASE)
#: Parameters that do not choose what is played: seeds, numbers of copies, pictures, logs.
INCIDENTAL = pattern("incidental")
_SPLIT = pattern("split")
_FACTORY = re.compile(r"(make|create|build|get|init|load)\w*env|env\w*(fn|factory)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class PlayedLevels:
    """One set of levels: `full` is the whole distribution, `finite` a range, `option` what a user sets."""

    kind: str
    key: tuple[object, ...] = ()
    text: str | None = None
    marks: tuple[Mark, ...] = ()
    doubts: frozenset[str] = frozenset()
    constructor: str | None = None
    """The constructor call as it is written, for the evidence table."""

    @property
    def same(self) -> tuple[object, ...]:
        """What two equal sets share."""
        return (self.kind, self.key)


#: Where no environment was found.
NOT_MADE = PlayedLevels("unknown")


def level_sets(item: Alternative) -> list[PlayedLevels]:
    """The level sets an environment can be made with; those that settings at their defaults rule out are dropped."""
    environment = item.value
    assert isinstance(environment, v.Environment)
    made = Mark(environment.frame.module.path, environment.call.lineno, "environment made")
    shown = describe(environment.call)
    doubts = item.doubts | environment.frame.doubts
    counts = _count_alternatives(environment)
    if counts is None:
        given = _given_arguments(environment)
        if given is None:
            return [PlayedLevels("unknown", (), "not known", (made,), doubts, shown)]
        key: tuple[object, ...] = (environment.name, *sorted(given.items()))
        return [PlayedLevels("none", key, "no levels", (made,), doubts, shown)]
    start = _start(environment)
    found = [
        PlayedLevels(*_classify(one, start), (made, *one.marks), doubts | one.doubts, shown)
        for one in counts
        if not one.is_unlikely
    ]
    return list({one.same: one for one in reversed(found)}.values())[::-1]


def _classify(item: Alternative, start: object) -> tuple[str, tuple[object, ...], str]:
    value = item.value
    is_option = item.origin == "option"
    named = next((mark.what.split("'")[1] for mark in item.marks if mark.what.startswith("option '")), "")
    if isinstance(value, v.KnownValue) and isinstance(value.value, int) and not isinstance(value.value, bool):
        named_so = f"option {named} (default {value.value})"
        # A count that is 0 by default is there to be set: which levels the paper's command plays is not in the code.
        if is_option and value.value <= 1:
            return "option", (named, start), f"{named_so} from {start}"
        if value.value == 0:
            return "full", (), "full distribution"
        words = named_so if is_option and named else f"{value.value} levels"
        return "finite", (value.value, start), f"{words} from {start}"
    if is_option:
        return "option", (named, start), f"option {named} from {start}"
    return "unknown", (), "not known"


def given_keywords(environment: v.Environment) -> tuple[dict[str, v.Binding], bool]:
    """The environment's keywords as far as they can be read, and whether there may be more of them."""
    fact = find_environment(environment.name)
    given = keyword_bindings(environment.call, environment.frame)
    found = {name: binding for name, binding in given if name}
    is_open = len(found) < len(given)
    if fact is None or fact.keywords_in is None:
        return found, is_open
    mapping = argument(environment.call, fact.keywords_in, fact.keywords_position)
    if mapping is None:
        return {}, is_open
    values = environment.frame.evaluate(mapping)
    if len(values) == 1 and isinstance(values[0].value, v.Mapping):
        return dict(values[0].value.items), values[0].value.is_open
    return {}, True


def _count_alternatives(environment: v.Environment) -> tuple[Alternative, ...] | None:
    fact = find_environment(environment.name)
    keywords, is_open = given_keywords(environment)
    for name, binding in keywords.items():
        if name == "num_levels" or (fact is None and _LEVEL_COUNT.match(name)):
            return binding.evaluate(name)
    if fact is not None:
        named = _identity_binding(environment, keywords)
        shown = describe(named.expression) if named is not None else ""
        is_levelled = fact.default_levels == 0 or "procgen" in shown.lower()
        mode = keywords.get("distribution_mode")
        fixed = mode is not None and any(
            isinstance(item.value, v.KnownValue) and item.value.value == "exploration"
            for item in mode.evaluate("distribution_mode")
        )
        if is_levelled and (is_open or fixed):
            return (Alternative(v.Unknown("the level count")),)
        if is_levelled:
            mark = Mark(
                environment.frame.module.path,
                environment.call.lineno,
                "no level count given: the full distribution",
            )
            return (Alternative(v.KnownValue(0), marks=(mark,), origin="default"),)
        return None
    if environment.info is None:
        return None
    # An environment of the repository may read its level count from a setting instead of an argument.
    module = environment.info.module
    for node in module.nodes:
        is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        if is_read and _LEVEL_COUNT.match(node.attr):  # type: ignore[attr-defined]
            found = module.frame.evaluate(node)
            if any(isinstance(item.value, v.KnownValue) or item.origin == "option" for item in found):
                return found
    return None


def _identity_binding(environment: v.Environment, keywords: dict[str, v.Binding]) -> v.Binding | None:
    """Which environment is made: the first argument, unless a keyword says it."""
    for name in ("id", "env_id", "task_id", "env_name"):
        given = argument(environment.call, name, None)
        if given is not None:
            return v.Binding(given, environment.frame)
        if name in keywords:
            return keywords[name]
    fact = find_environment(environment.name)
    if environment.call.args and (fact is None or fact.factory_position in (None, 0)):
        return v.Binding(environment.call.args[0], environment.frame)
    return None


def _given_arguments(environment: v.Environment) -> dict[str, object] | None:
    """What decides which environment is made, by parameter; None when its name is not known."""
    keywords, is_open = given_keywords(environment)
    bindings = dict(keywords)
    if environment.info is None:
        binding = _identity_binding(environment, keywords)
        if binding is not None:
            bindings["id"] = binding
        for number, item in enumerate(environment.call.args[1:], start=2):
            bindings[f"argument {number}"] = v.Binding(item, environment.frame)
    else:
        init = classes.method(environment.info, "__init__")
        bindings = {}
        if init is not None:
            receiver = Alternative(v.Instance(environment.info, environment.call))
            frame = environment.frame.enter(init, environment.call, receiver)
            bindings = dict(frame.bindings)
    # What the repository's own factory was given may choose the levels through wrappers: make_env(mode="test").
    for frame in environment.frame.chain():
        if frame.function is not None and _FACTORY.search(frame.function.name):
            bindings |= {
                f"{frame.function.name} {name}": one
                for name, one in frame.bindings.items()
                if _SPLIT.search(name) and one.expression is not None and name in plain_names_in(frame.scope)
            }
    found: dict[str, object] = {
        name: _symbol(one, name) for name, one in bindings.items() if not INCIDENTAL.search(name)
    }
    if is_open:
        found["further keywords"] = ("text", describe(environment.call))
    return found if environment.info is not None or "id" in found else None


def _symbol(binding: v.Binding, name: str) -> tuple[object, ...]:
    """An argument as far as it can be compared: a value, a setting, or the words in which it is written."""
    values = binding.evaluate(name)
    symbols: set[tuple[object, ...]] = set()
    for item in [one for one in values if not one.is_unlikely] or values:
        value = item.value
        symbol: tuple[object, ...] = ("unknown", describe(binding.expression))
        if isinstance(value, v.KnownValue):
            symbol = ("setting" if item.origin == "option" else "value", repr(value.value))
        elif isinstance(value, v.Namespace | v.Instance | v.Mapping):
            symbol = ("object", type(value).__name__)
        elif isinstance(value, v.Unknown) and (value.is_neutral or re.search(r"[.\[(]", value.text)):
            symbol = ("text", value.text)
        symbols.add(symbol)
    return symbols.pop() if len(symbols) == 1 else ("unknown", describe(binding.expression))


def _start(environment: v.Environment) -> object:
    binding = given_keywords(environment)[0].get("start_level")
    if binding is None:
        return 0
    values = binding.evaluate("start_level")
    if len(values) == 1 and isinstance(values[0].value, v.KnownValue):
        return values[0].value.value
    return describe(binding.expression)


def differ(test: PlayedLevels, train: PlayedLevels) -> tuple[bool | None, bool]:
    """Whether the test levels are held out from training, and whether that is proved.

    The full distribution is held out from a finite training set; a range is held out when it shares no level with it.
    """
    if "unknown" in (test.kind, train.kind):
        return None, False
    if test.kind == train.kind == "none":
        return _compare_arguments(test.key, train.key)
    if "none" in (test.kind, train.kind):
        return None, False
    if train.kind == "full":
        return (False, True) if test.kind in ("full", "finite") else (None, False)
    if test.kind == "full":
        return True, train.kind == "finite"
    if test.same == train.same:
        return False, True
    numbers = [*test.key[:2], *train.key[:2]]
    if len(numbers) != 4 or not all(isinstance(item, int) for item in numbers):
        return None, False
    count, start, train_count, train_start = (int(item) for item in numbers)  # type: ignore[call-overload]
    if 1 in (count, train_count):
        # A single level is what code gives that changes the level itself, episode by episode.
        return None, False
    if train_start <= start and start + count <= train_start + train_count:
        return False, True
    if start >= train_start + train_count or start + count <= train_start:
        return True, True
    return None, False


def _compare_arguments(test: tuple[object, ...], train: tuple[object, ...]) -> tuple[bool | None, bool]:
    """Two environments without level counts: the same constructor with the same arguments plays the same levels."""
    ours: dict[str, tuple[object, ...]] = dict(test[1:])  # type: ignore[arg-type]
    theirs: dict[str, tuple[object, ...]] = dict(train[1:])  # type: ignore[arg-type]
    different = [name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)]
    is_certain = not any("unknown" in (*ours.get(name, ()), *theirs.get(name, ())) for name in ours | theirs)
    if test[0] != train[0]:
        one, other = ours.get("id"), theirs.get("id")
        return (False, False) if one == other and one is not None else (None, False)
    if not different:
        return False, is_certain
    splits = [name for name in different if _SPLIT.search(name.rsplit(" ", 1)[-1])]
    pairs = [(ours.get(name, ("absent",)), theirs.get(name, ("absent",))) for name in different]
    stated = all(one[0] == other[0] == "value" for one, other in pairs)
    if splits and len(splits) == len(different) and stated:
        return True, is_certain
    if different == ["id"] and stated:
        return True, False  # another environment by name
    # A split, or a name that cannot be read, may choose other levels.
    is_open = bool(splits) or (
        different == ["id"] and all(kind[0] != "value" for pair in pairs for kind in pair)
    )
    return (None, False) if is_open else (False, False)


_KEY = re.compile(r"rng|key|seed|state|^_$|^obs", re.IGNORECASE)


def chosen_levels(play: Play) -> frozenset[str]:
    """What chooses levels when an episode begins, as it is written: `reset(level=i)`, parameters of a step.

    One fixed seed is not a choice of levels.
    """
    found: set[str] = set()
    receiver = last_name(play.site.receiver) if play.site.receiver is not None else ""
    chain = play.frame.chain()
    for frame in chain:
        for node in own_nodes(frame.scope):
            if not isinstance(node, ast.Call):
                continue
            inner = node.func.args if isinstance(node.func, ast.Call) else []
            name = last_name(inner[0] if inner else node.func)
            is_reset = name.startswith("reset") or name in ("set_task", "sample_task", "set_level", "seed")
            if not is_reset or (receiver and receiver not in names_in(node)):
                continue
            given = arguments_of(node)
            chosen = {_written(one, frame) for one in given if not _is_fixed_seed(one, frame)}
            if chosen and frame not in chain[-2:]:
                chosen = {f"for line {play.site.call.lineno}"}  # for which of several steps is not said
            found |= chosen
    call = play.site.call
    if len(call.args) > 3:
        found.add(_written(call.args[3], play.frame))
    return frozenset(found)


def _written(node: ast.expr, frame: Frame | None) -> str:
    """An expression as it is written where its value comes from: a parameter is followed to the call."""
    while isinstance(node, ast.Name) and frame is not None:
        binding = frame.bindings.get(node.id)
        if binding is None:
            frame = frame.parent
        elif binding.expression is None or binding.is_default or binding.frame is frame:
            break  # the last is `**settings`, which is bound to itself
        else:
            node, frame = binding.expression, binding.frame
    return describe(node)


def _is_fixed_seed(node: ast.expr, frame: Frame) -> bool:
    names = names_in(node)
    looped = {
        inner
        for one in own_nodes(frame.scope)
        if isinstance(one, ast.For | ast.comprehension)
        for inner in names_in(one.target)
    }
    is_drawn = any(is_draw(one) for one in ast.walk(node)) and not any(
        "key" in name or "rng" in name for name in names
    )
    if isinstance(node, ast.Constant) or not names:
        return True
    return any(_KEY.search(name) for name in names) and not names & looped and not is_drawn


def is_draw(node: ast.AST) -> bool:
    """Whether a call draws something at random."""
    return isinstance(node, ast.Call) and any(
        word in ast.unparse(node.func).lower() for word in ("random", "rand", "sample", "choice")
    )
