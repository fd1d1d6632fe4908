"""From the alternatives of an action to the rule: sampled, argmax, epsilon-greedy, mixed or unresolved."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.values import (
    Action,
    Alternative,
    Computed,
    Frame,
    Guard,
    KnownValue,
    Mapping,
    Mark,
    Option,
    Sequence,
    Unknown,
    describe,
    recorded,
)
from gapfloor.audit.judgement.origins import follow_name
from gapfloor.audit.reading.index import names_in

_PROVENANCE = {
    "argument": "explicit-call-site",
    "literal": "explicit-call-site",
    "default": "default-argument",
    "option": "config-option",
}


_TEMPERATURE = re.compile(r"temperature|temp|temper|noise_scale|std_scale|stddev_scale", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class RuleFinding:
    """The rule of one stepped environment, what decides it, and the lines that say so."""

    rule: str
    provenance: str
    """A provenance, or `unflagged` when nothing at the call decides the rule."""
    marks: tuple[Mark, ...]
    candidates: tuple[str, ...] = ()
    primitives: tuple[Action, ...] = ()
    is_value_based: bool = False


@dataclass(frozen=True, eq=False)
class _Judged:
    alternative: Alternative
    is_live: bool
    is_random: bool
    refusals: tuple[tuple[Alternative, ...], ...]
    """For each condition that does not hold, the constants that say so."""
    is_another_object: bool
    """Whether all such conditions choose the object that acts, and none is met on the way to the action."""
    random_guards: tuple[Guard, ...]


def decide_rule(evaluator: Evaluator, alternatives: tuple[Alternative, ...]) -> RuleFinding:
    """The rule by which an action was chosen, from what the action can be."""
    flat = _flat(evaluator, alternatives, 3)
    likely = [item for item in flat if not evaluator.is_unlikely(item)]
    frozen = [item for item in (_frozen_by(evaluator, one) for one in likely) if item is not None]
    if frozen:
        return _without_spread(likely, frozen)
    actions = tuple(_as_action(item) for item in flat)
    if actions and all(recorded(item.value) is not None for item in actions):
        return RuleFinding("recorded", "n/a", (), ())
    judged = [_judge(evaluator, item) for item in actions if _is_possible(evaluator, item)]
    if not judged and any(_is_fixed(item) for item in alternatives):
        return RuleFinding("constant", "n/a", (), ())
    chosen = [item for item in judged if isinstance(item.alternative.value, Action)]
    live = [item for item in chosen if item.is_live]
    unknown = [item for item in judged if item.is_live and not isinstance(item.alternative.value, Action)]
    if not live:
        return RuleFinding("unresolved", "unresolved", _marks(chosen), _names(judged))
    rules = {_rule(item) for item in live}
    primitives = tuple(item.alternative.value for item in live if isinstance(item.alternative.value, Action))
    is_value_based = not any(
        item.alternative.value.needs_distribution
        for item in chosen
        if isinstance(item.alternative.value, Action)
    )
    undecided = (*_marks(live), *_differing(evaluator, [*live, *unknown]))
    if unknown:
        possible = _names([*live, *unknown])
        return RuleFinding("unresolved", "unresolved", undecided, possible, primitives, is_value_based)
    if "random" in rules and len(rules) > 1:
        return _with_exploration(evaluator, live, rules, primitives, is_value_based)
    if len(rules) > 1 or "noisy" in rules or "unresolved" in rules:
        return RuleFinding("unresolved", "unresolved", undecided, _names(live), primitives, is_value_based)
    rule = rules.pop()
    rivals = [item for item in chosen if not item.is_live and _rule(item) != rule]
    provenance, lines = _provenance(rivals, live)
    if not rivals:
        # Something unreadable that a flag at the call, or its default, keeps out shows what decides; a setting may
        # keep out anything.
        hidden = [item for item in judged if not item.is_live and item not in chosen]
        kept_out, marks = _provenance(hidden, live)
        if kept_out in ("explicit-call-site", "default-argument"):
            provenance, lines = kept_out, marks
    return RuleFinding(rule, provenance, (*_marks(live), *lines), (), primitives, is_value_based)


def _differing(evaluator: Evaluator, items: list[_Judged]) -> list[Mark]:
    """The settings that configuration files state differently, among the conditions that stay open."""
    found = []
    for item in items:
        for guard in item.alternative.guards:
            known, used = evaluator.truth(guard.test, guard.frame)
            if known is None:
                found += [mark for one in used for mark in one.marks if "differs between" in mark.what]
    return found


def _frozen_by(evaluator: Evaluator, item: Alternative) -> Alternative | None:
    """The temperature of zero, or one that cannot be read, that a call on the way to the draw is given."""
    value = item.value
    if not isinstance(value, Action) or value.rule != "sampled":
        return None
    for frame in reversed(value.frame.chain()):
        for name, binding in frame.bindings.items():
            if not _TEMPERATURE.fullmatch(name) or frame.function is None:
                continue
            if name not in names_in(ast.Module(frame.function.node.body, [])):  # type: ignore[arg-type]
                continue  # accepted and never read
            for one in evaluator.evaluate_binding(binding, name):
                number = one.value.default if isinstance(one.value, Option) else None
                number = one.value.value if isinstance(one.value, KnownValue) else number
                is_open = isinstance(one.value, Unknown) and not binding.is_default
                if is_open or (isinstance(number, int | float) and number == 0):
                    return one
    return None


def _without_spread(actions: list[Alternative], deciders: list[Alternative]) -> RuleFinding:
    """A draw at temperature zero is the maximum; it is that only where every alternative says so."""
    names = tuple(
        f"{item.value.rule} at temperature zero"
        for item in actions
        if isinstance(item.value, Action) and item.value.rule == "sampled"
    )
    primitives = tuple(item.value for item in actions if isinstance(item.value, Action))
    origins = {item.origin for item in deciders}
    is_known = all(not isinstance(item.value, Unknown) for item in deciders)
    if len(names) < len(actions) or len(deciders) < len(actions) or not is_known:
        return RuleFinding("unresolved", "unresolved", (), tuple(dict.fromkeys(names)), primitives)
    provenance = _PROVENANCE.get(origins.pop(), "unresolved") if len(origins) == 1 else "unresolved"
    marks = dict.fromkeys(mark for item in (*actions, *deciders) for mark in item.marks)
    return RuleFinding("argmax", provenance, tuple(marks), (), primitives)


def _flat(evaluator: Evaluator, alternatives: tuple[Alternative, ...], depth: int) -> list[Alternative]:
    """Actions out of the lists and mappings in which they are handed to an environment."""
    found: list[Alternative] = []
    for item in alternatives:
        inner: list[Alternative] = []
        if isinstance(item.value, Sequence) and item.value.elements and depth:
            inner = [*evaluator.names.elements((item,))]
        elif isinstance(item.value, Mapping) and item.value.is_read and depth:
            for name, binding in item.value.everything:
                inner.extend(evaluator.evaluate_binding(binding, name))
        if inner:
            found.extend(
                one.under(*item.guards).noting(*item.marks)
                for one in _flat(evaluator, tuple(inner), depth - 1)
            )
        else:
            found.append(item)
    return found


def _as_action(item: Alternative) -> Alternative:
    """What a network computes without a draw is its one answer: the deterministic rule."""
    value = item.value
    if isinstance(value, Computed) and value.is_observed:
        return replace(item, value=Action("argmax", value.node, value.frame))
    return replace(item, value=KnownValue("constant")) if isinstance(value, Computed) else item


def _is_fixed(item: Alternative) -> bool:
    return isinstance(item.value, Computed) or (
        isinstance(item.value, KnownValue) and item.value.value is not None
    )


def _is_possible(evaluator: Evaluator, item: Alternative) -> bool:
    """Not None, and not under two conditions that contradict each other."""
    if isinstance(item.value, KnownValue):
        return False
    seen: dict[str, bool] = {}
    for guard in item.guards:
        text = describe(guard.test)
        if seen.setdefault(text, guard.holds) != guard.holds:
            return False
    return True


def _judge(evaluator: Evaluator, item: Alternative) -> _Judged:
    is_live, is_random = True, False
    refusals: list[tuple[Alternative, ...]] = []
    places: list[Frame] = []
    random_guards: list[Guard] = []
    for guard in item.guards:
        known, used = evaluator.truth(guard.test, guard.frame)
        if known is not None:
            if known != guard.holds:
                is_live = False
                refusals.append(tuple(used))
                places.append(guard.frame)
        elif evaluator.is_random_condition(guard.test, guard.frame):
            is_random = True
            random_guards.append(guard)
    way = item.value.frame.chain() if isinstance(item.value, Action) else []
    is_other = bool(places) and bool(way) and not any(place in way for place in places)
    return _Judged(item, is_live, is_random, tuple(refusals), is_other, tuple(random_guards))


def _rule(item: _Judged) -> str:
    assert isinstance(item.alternative.value, Action)
    return item.alternative.value.rule


def _provenance(rivals: list[_Judged], live: list[_Judged]) -> tuple[str, tuple[Mark, ...]]:
    if not rivals:
        return "unflagged", ()
    if all(item.is_another_object for item in rivals):
        return "unresolved", ()  # another agent would act otherwise; what decides for this one is not said
    # The rival that fails by the fewest conditions is the one that the rule's own flag keeps out.
    fewest = min(len(item.refusals) for item in rivals)
    kinds: list[dict[str, tuple[Mark, ...]]] = []
    for item in rivals:
        if len(item.refusals) != fewest:
            continue
        found: dict[str, tuple[Mark, ...]] = {}
        for decider in item.refusals[-1]:
            if decider.origin in _PROVENANCE:
                found.setdefault(_PROVENANCE[decider.origin], decider.marks)
        kinds.append(found)
    common = set.intersection(*(set(found) for found in kinds)) if kinds else set()
    # A flag given at the call decides, also where a setting could have prevented it.
    for name in ("explicit-call-site", "config-option", "default-argument"):
        if name in common and (name == "explicit-call-site" or all(set(found) == {name} for found in kinds)):
            return name, tuple(dict.fromkeys(mark for found in kinds for mark in found[name]))
    return "unresolved", tuple(
        dict.fromkeys(mark for found in kinds for marks in found.values() for mark in marks)
    )


def _with_exploration(
    evaluator: Evaluator,
    live: list[_Judged],
    rules: set[str],
    primitives: tuple[Action, ...],
    is_value_based: bool,
) -> RuleFinding:
    others = rules - {"random"}
    random_guards = [guard for item in live for guard in item.random_guards]
    if not random_guards or len(others) != 1:
        marks = (*_marks(live), *_differing(evaluator, live))
        return RuleFinding("unresolved", "unresolved", marks, _names(live), primitives, is_value_based)
    rule = {"argmax": "epsilon-greedy", "sampled": "mixed"}.get(others.pop(), "unresolved")
    provenance, lines = _threshold(evaluator, random_guards[0].test, random_guards[0].frame)
    zeros = _stated_zeros(evaluator, random_guards[0]) if provenance == "unresolved" else []
    if zeros:
        # A random action that some settings switch off: without the value nobody can tell.
        return RuleFinding(
            "unresolved", "unresolved", (*_marks(live), *zeros), _names(live), primitives, is_value_based
        )
    return RuleFinding(rule, provenance, (*_marks(live), *lines), (), primitives, is_value_based)


def _stated_zeros(evaluator: Evaluator, guard: Guard) -> list[Mark]:
    """The settings files that set the probability of a random action to zero, where it is read from a setting."""
    found = []
    for node in ast.walk(guard.test):
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            continue
        meant, frame, stated = follow_name(evaluator, node, guard.frame)
        expressions = [one.expression for one in stated if one.expression is not None] or [meant]
        for part in [item for one in expressions for item in ast.walk(one)]:
            key: object = part.value if isinstance(part, ast.Constant) else getattr(part, "attr", None)
            script = frame.chain()[0].module
            if not isinstance(key, str):
                continue
            for one in evaluator.options.in_files((key,), script):
                if isinstance(one.value, int | float) and not isinstance(one.value, bool) and one.value == 0:
                    found.append(Mark(one.file, one.line, f"setting '{key}' is {one.value!r}"))
    return found


def _threshold(evaluator: Evaluator, test: ast.expr, frame: Frame) -> tuple[str, tuple[Mark, ...]]:
    """Where epsilon comes from."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and evaluator.is_random_condition(node, frame):
            mark = Mark(frame.module.path, node.lineno, f"random action when {describe(node)}")
            for side in (node.left, *node.comparators):
                for item in evaluator.evaluate(side, frame):
                    if item.origin in _PROVENANCE:
                        return _PROVENANCE[item.origin], (mark, *item.marks)
            return "unresolved", (mark,)
    return "unresolved", ()


def _marks(items: list[_Judged]) -> tuple[Mark, ...]:
    found: list[Mark] = []
    for item in items:
        found.extend(item.alternative.marks)
        value = item.alternative.value
        if isinstance(value, Action):
            words = {"sampled": "sampling primitive", "argmax": "argmax primitive", "random": "random action"}
            line = getattr(value.node, "lineno", 0)
            found.append(Mark(value.frame.module.path, line, words.get(value.rule, value.rule)))
    return tuple(dict.fromkeys(found))


def _names(items: list[_Judged]) -> tuple[str, ...]:
    found = []
    for item in items:
        value = item.alternative.value
        if isinstance(value, Action):
            line = getattr(value.node, "lineno", 0)
            found.append(f"{value.rule} at {value.frame.module.path}:{line}")
        elif isinstance(value, Unknown):
            found.append(f"not known: {value.text[:60]}")
    return tuple(dict.fromkeys(found))
