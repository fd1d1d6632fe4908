"""From the alternatives of an action to the rule: sampled, argmax, epsilon-greedy, mixed or unresolved."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from gapfloor.audit.interpreter import operators
from gapfloor.audit.interpreter import values as v
from gapfloor.audit.interpreter.facts import table
from gapfloor.audit.interpreter.values import Alternative, Mark, describe
from gapfloor.audit.reading.index import names_in, plain_names_in

#: The provenance that the origin of a deciding constant means.
PROVENANCE: dict[str, str] = table("words")["provenance_of_origin"]
_TEMPERATURE = re.compile(r"temperature|temp|temper|noise_scale|std_scale|stddev_scale", re.IGNORECASE)
_RULE_FLAG = re.compile(r"determin|greedy|stochastic|explor|sampl", re.IGNORECASE)
_WORDS: dict[str, str] = table("words")["primitives"]


@dataclass(frozen=True, eq=False)
class RuleFinding:
    """The rule of one stepped environment, what decides it, and the lines that say so."""

    rule: str
    provenance: str
    """A provenance, or `unflagged` when nothing at the call decides the rule."""
    marks: tuple[Mark, ...] = ()
    candidates: tuple[str, ...] = ()
    primitives: tuple[v.Action, ...] = ()
    doubts: frozenset[str] = frozenset()
    is_value_based: bool = False

    @property
    def is_answered(self) -> bool:
        """Whether a rule was found."""
        return self.rule != "unresolved"


@dataclass(frozen=True, eq=False)
class _Judged:
    item: Alternative
    rule: str | None
    is_live: bool
    is_open: bool
    """Whether a condition that is neither known nor random decides."""
    refusals: tuple[tuple[Alternative, ...], ...]
    """For each condition that does not hold, the constants that say so; the nearest to the action comes last."""
    depth: int
    """How deep in the calls the nearest such condition is."""
    random_guards: tuple[v.Guard, ...]


def decide_rule(alternatives: tuple[Alternative, ...]) -> RuleFinding:
    """The rule by which an action was chosen, from what the action can be."""
    flat = _flat(alternatives, 3)
    judged = [_judge(item) for item in flat]
    live = [item for item in judged if item.is_live and not _is_nothing(item.item)]
    chosen = [item for item in live if item.rule is not None]
    unknown = [item for item in live if item.rule is None]
    if not chosen:
        if unknown and all(item.item.value == operators.RECORDED for item in unknown):
            return RuleFinding("recorded", "n/a")
        is_guess = any(item.doubts and isinstance(item.value, v.Computed) for item in flat)
        if not unknown and not is_guess and any(_is_fixed(item) for item in flat):
            return RuleFinding("constant", "n/a")
        return RuleFinding("unresolved", "unresolved", _marks(live), _names([*live, *judged]))
    frozen = [(item, _zero_temperature(item.item)) for item in chosen]
    if any(zero is not None for _, zero in frozen):
        return _cold(frozen, unknown)
    chosen, is_narrowed = _without_side_results(chosen)
    rules = {item.rule for item in chosen}
    primitives = tuple(item.item.value for item in chosen if isinstance(item.item.value, v.Action))
    doubts = frozenset(doubt for item in chosen for doubt in item.item.doubts)
    doubts |= {doubt for item in judged for guard in item.item.guards for doubt in guard.doubts}
    if is_narrowed:
        doubts |= {"something else that a network computes may reach the same place"}
    near = {id(one.frame.function) for one in primitives}
    near |= {id(one.frame.caller.function) for one in primitives if one.frame.caller is not None}
    # Another rule of the same method counts too: a policy that was asked for its maximum.
    value_based = not any(
        one.is_from_policy and (one in primitives or id(one.frame.function) in near)
        for one in (item.item.value for item in judged)
        if isinstance(one, v.Action)
    )
    base = RuleFinding("unresolved", "unresolved", _marks(chosen), (), primitives, doubts, value_based)
    texts = [_cause(item.item.value) for item in unknown]
    texts = [text for text in texts if text]
    # Something that cannot be read, or whose class is not known, may well be a policy.
    is_by_name = any(mark.what.startswith("candidate: ") for item in chosen for mark in item.item.marks)
    is_guess = rules == {"random"} and bool(texts or is_by_name)
    if is_guess or (texts and _is_one_branch(chosen, unknown)):
        return replace(base, candidates=_names([*chosen, *unknown]))
    if texts:
        # Something that cannot be read may act instead; what can be read is only likely.
        causes = [f"{text} cannot be read" for text in texts]
        base = replace(base, doubts=doubts | set(causes[:3]), candidates=_names([*chosen, *unknown]))
    if "random" in rules and len(rules) > 1:
        return _with_exploration(chosen, rules - {"random"}, base)
    if len(rules) > 1:
        # Where only an unknown setting chooses between them, the setting is named.
        said = [guard.frame.truth(guard.test) for item in chosen for guard in item.item.guards]
        marks = dict.fromkeys(
            mark for known, used in said if known is None for one in used for mark in one.marks
        )
        return replace(base, marks=(*base.marks, *marks), candidates=_names(chosen))
    rule = rules.pop()
    assert rule is not None
    if rule in ("noisy", "unresolved"):
        return replace(base, candidates=_names(live))
    rivals = [item for item in judged if not item.is_live and item.rule not in (None, rule)]
    refused = [item for item in judged if not item.is_live and item.rule is None]
    rivals = rivals or [item for item in refused if not _is_nothing(item.item)]
    provenance, lines, more = _provenance(rivals)
    if rule == "epsilon-greedy" or any(doubt.endswith(v.MAY_BE_GIVEN) for doubt in base.doubts):
        provenance = (
            "unresolved"  # where a library's epsilon, or a flag behind `**settings`, comes from is not known
        )
    if provenance == "config-option" and all(item.rule is None for item in rivals):
        # A setting that chooses between agents says nothing about their rule.
        provenance, lines = "unflagged", ()
    return replace(
        base, rule=rule, provenance=provenance, marks=(*base.marks, *lines), doubts=base.doubts | more
    )


def _without_side_results(chosen: list[_Judged]) -> tuple[list[_Judged], bool]:
    """Draws and maxima without what a network computes besides, where no condition chooses between the two."""
    acted = [item for item in chosen if isinstance(item.item.value, v.Action)]
    tests = {(id(guard.test), guard.holds) for item in acted for guard in item.item.guards}
    rivals = [
        item
        for item in chosen
        if item not in acted and any((id(guard.test), not guard.holds) in tests for guard in item.item.guards)
    ]
    is_narrowed = bool(acted) and len(acted) < len(chosen) and not rivals
    return (acted, True) if is_narrowed else (chosen, False)


def _is_one_branch(chosen: list[_Judged], unknown: list[_Judged]) -> bool:
    """Whether what can be read hangs on a flag of the rule, under whose opposite something unknown acts."""
    others = {(id(guard.test), not guard.holds) for item in unknown for guard in item.item.guards}
    return all(
        item.is_open
        and any(
            (id(guard.test), guard.holds) in others and any(map(_RULE_FLAG.search, names_in(guard.test)))
            for guard in item.item.guards
        )
        for item in chosen
    )


def _cause(value: v.Value) -> str:
    """What is not known about an alternative that may be the action; nothing for plain data."""
    if isinstance(value, v.Unknown):
        return "" if value.is_neutral else value.text
    return f"{value.name}()" if isinstance(value, v.ExternalObject | v.External) else ""


def _flat(alternatives: tuple[Alternative, ...], depth: int) -> list[Alternative]:
    """Actions out of the lists and mappings in which they are handed to an environment."""
    found: list[Alternative] = []
    for item in alternatives:
        held = item.value
        is_full = bool(
            held.elements if isinstance(held, v.Sequence) else isinstance(held, v.Mapping) and held.items
        )
        inner = _flat(operators.elements((item,)), depth - 1) if depth and is_full else []
        found.extend([one.noting(*item.marks) for one in inner] or [item])
    return found


def _is_nothing(item: Alternative) -> bool:
    """Not an action: None, an empty list, a number that a real action replaces."""
    value = item.value
    if isinstance(value, v.KnownValue) or (isinstance(value, v.Computed) and not value.is_observed):
        return True
    seen: dict[str, bool] = {}
    return any(seen.setdefault(describe(guard.test), guard.holds) != guard.holds for guard in item.guards)


def _is_fixed(item: Alternative) -> bool:
    value = item.value
    return isinstance(value, v.Computed) or (isinstance(value, v.KnownValue) and value.value is not None)


def _judge(item: Alternative) -> _Judged:
    value = item.value
    rule = value.rule if isinstance(value, v.Action) else None
    if isinstance(value, v.Computed) and value.is_observed:
        rule = "argmax"  # what a network computes without a draw is its one answer
    refused = sorted((one for one in item.guards if one.is_unlikely), key=lambda one: one.frame.depth)
    undecided = [one for one in item.guards if one.frame.truth(one.test)[0] is None]
    drawn = tuple(one for one in undecided if operators.is_random(one.test, one.frame))
    refusals = tuple(tuple(one.frame.truth(one.test)[1]) for one in refused)
    depth = refused[-1].frame.depth if refused else 0
    return _Judged(item, rule, not refused, len(drawn) < len(undecided), refusals, depth, drawn)


def _provenance(rivals: list[_Judged]) -> tuple[str, tuple[Mark, ...], frozenset[str]]:
    if not rivals:
        return "unflagged", (), frozenset()
    # The rival that fails by the fewest conditions, nearest to the action, is the one that its own flag keeps out.
    fewest = min(len(item.refusals) for item in rivals)
    deepest = max(item.depth for item in rivals if len(item.refusals) == fewest)
    kinds: list[dict[str, tuple[Mark, ...]]] = []
    doubts: set[str] = set()
    for item in rivals:
        if len(item.refusals) == fewest and item.depth == deepest:
            found: dict[str, tuple[Mark, ...]] = {}
            for decider in item.refusals[-1]:
                if decider.origin in PROVENANCE:
                    found.setdefault(PROVENANCE[decider.origin], decider.marks)
                    doubts |= decider.doubts
            kinds.append(found)
    common = set.intersection(*(set(found) for found in kinds)) if kinds else set()
    # A flag given at the call decides, also where a setting could have prevented it.
    for name in ("explicit-call-site", "config-option", "default-argument"):
        if name in common and (name == "explicit-call-site" or all(set(found) == {name} for found in kinds)):
            lines = tuple(dict.fromkeys(mark for found in kinds for mark in found[name]))
            return name, lines, frozenset(doubts)
    lines = tuple(dict.fromkeys(mark for found in kinds for marks in found.values() for mark in marks))
    return "unresolved", lines, frozenset(doubts)


def _with_exploration(chosen: list[_Judged], others: set[str | None], base: RuleFinding) -> RuleFinding:
    guards = [guard for item in chosen for guard in item.random_guards]
    if not guards or len(others) != 1:
        return replace(base, candidates=_names(chosen))
    rule = {"argmax": "epsilon-greedy", "sampled": "mixed"}.get(str(next(iter(others))), "unresolved")
    provenance, marks, is_known = _threshold(guards[0])
    if not is_known and provenance == "config-option":
        return replace(base, marks=(*base.marks, *marks), candidates=_names(chosen))
    doubts = base.doubts if is_known else base.doubts | {"the probability of a random action cannot be read"}
    return replace(base, rule=rule, provenance=provenance, marks=(*base.marks, *marks), doubts=doubts)


def _threshold(guard: v.Guard) -> tuple[str, tuple[Mark, ...], bool]:
    """Where epsilon comes from."""
    for node in ast.walk(guard.test):
        if isinstance(node, ast.Compare):
            mark = Mark(guard.frame.module.path, node.lineno, f"random action when {describe(node)}")
            for side in (node.left, *node.comparators):
                for item in guard.frame.evaluate(side):
                    if item.origin in PROVENANCE:
                        is_known = isinstance(item.value, v.KnownValue) and not item.doubts
                        return PROVENANCE[item.origin], (mark, *item.marks), is_known
            return "unresolved", (mark,), False
    return "unresolved", (), False


def _zero_temperature(item: Alternative) -> Alternative | None:
    """The temperature of zero, or one that cannot be read, that a call on the way to the draw is given."""
    value = item.value
    if not isinstance(value, v.Action) or value.rule != "sampled":
        return None
    for frame in reversed(value.frame.chain()):
        for name, binding in frame.bindings.items():
            if not _TEMPERATURE.fullmatch(name) or frame.function is None:
                continue
            if name not in plain_names_in(frame.scope):
                continue  # accepted and never read
            for one in binding.evaluate(name):
                number = one.value.value if isinstance(one.value, v.KnownValue) else None
                is_unread = isinstance(one.value, v.Unknown) and not binding.is_default
                if is_unread or (isinstance(number, int | float) and number == 0):
                    return one
    return None


def _cold(frozen: list[tuple[_Judged, Alternative | None]], unknown: list[_Judged]) -> RuleFinding:
    """A draw at temperature zero is the maximum; it is that only where every alternative says so."""
    deciders = [zero for _, zero in frozen if zero is not None]
    items = [item.item for item, _ in frozen]
    primitives = tuple(item.value for item in items if isinstance(item.value, v.Action))
    is_known = all(isinstance(zero.value, v.KnownValue) for zero in deciders)
    if len(deciders) < len(frozen) or not is_known or unknown:
        names = tuple(dict.fromkeys(f"{_text(item)} at temperature zero" for item in items))
        return RuleFinding("unresolved", "unresolved", (), names, primitives)
    origins = {zero.origin for zero in deciders}
    provenance = PROVENANCE.get(origins.pop(), "unresolved") if len(origins) == 1 else "unresolved"
    marks = dict.fromkeys(mark for item in (*items, *deciders) for mark in item.marks)
    doubts = frozenset(doubt for item in items for doubt in item.doubts)
    return RuleFinding("argmax", provenance, tuple(marks), (), primitives, doubts)


def _marks(items: list[_Judged]) -> tuple[Mark, ...]:
    found: list[Mark] = []
    for item in items:
        found.extend(item.item.marks)
        value = item.item.value
        if isinstance(value, v.Action | v.Computed) and item.rule is not None:
            rule = _WORDS.get(item.rule, item.rule)
            words = "the network's answer" if isinstance(value, v.Computed) else rule
            found.append(Mark(value.frame.module.path, getattr(value.node, "lineno", 0), words))
    return tuple(dict.fromkeys(found))


def _text(item: Alternative) -> str:
    value = item.value
    if isinstance(value, v.Action) or (isinstance(value, v.Computed) and value.is_observed):
        words = value.rule if isinstance(value, v.Action) else "a network's answer"
        return f"{words} at {value.frame.module.path}:{getattr(value.node, 'lineno', 0)}"
    if isinstance(value, v.Unknown | v.ExternalObject):
        shown = value.text[:60] if isinstance(value, v.Unknown) else f"{value.name[:60]}()"
        return f"not known: {shown}"
    return ""


def _names(items: list[_Judged]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in (_text(item.item) for item in items) if text))
