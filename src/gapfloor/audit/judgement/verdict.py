"""From evaluation paths to one verdict per script and one for the repository.

Absence must be proved: "no evaluation" is said only where every environment reaches training alone and nothing in the
code that was reached speaks of an evaluation.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gapfloor.audit.interpreter.facts import pattern
from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.learning import EVALUATING
from gapfloor.audit.judgement.paths import Judged
from gapfloor.audit.judgement.rows import FIELDS, EvaluationPath
from gapfloor.audit.reading.index import Index, last_name


@dataclass(frozen=True)
class AuditVerdict:
    """What the repository does, about its policy-gradient agent where it has several."""

    evaluates_heldout: bool | None
    rule: str
    provenance: str
    in_loop: bool | None
    levels: Mapping[str, str] = field(default_factory=dict, compare=False)
    """proved, likely or open, for each of the four."""

    def answers(self) -> dict[str, Any]:
        """The four answers by name."""
        return {name: getattr(self, name) for name in FIELDS}


OPEN = AuditVerdict(None, "unresolved", "unresolved", None, dict.fromkeys(FIELDS, "open"))


def decide_verdict(
    paths: Sequence[EvaluationPath], training: Sequence[Judged], *, hints: Sequence[object], is_complete: bool
) -> AuditVerdict:
    """The verdict: agreement of the paths that matter; `hints` of an evaluation forbid to say that there is none."""
    if not paths:
        return _without_evaluation(training, hints, is_complete=is_complete)
    chosen = preferred(paths)
    if all(path.grades["rule"] == "open" for path in chosen):
        # What can be read speaks for what cannot, where it is as clearly an evaluation.
        least = max(3, *(path.score for path in chosen))
        answered = [
            one for one in paths if one.is_reached and one.grades["rule"] != "open" and one.score >= least
        ]
        chosen, is_complete = preferred(answered) or chosen, is_complete and not answered
    values: dict[str, Any] = {}
    levels: dict[str, str] = {}
    rivals = [path for path in paths if path.is_reached and not path.makes_pictures]
    rivals = [path for path in rivals if path.agent != "value-based"]
    for name in FIELDS:
        agreeing = [path for path in chosen if name != "provenance" or path.rule == values["rule"]]
        values[name], levels[name] = _agreed(agreeing or chosen, name)
        # Which of several evaluations makes the reported numbers is a choice; where they differ, nothing is proved.
        is_disputed = any(getattr(path, name) != values[name] for path in rivals)
        if levels[name] == "proved" and (is_disputed or not is_complete):
            levels[name] = "likely"
    is_disputed = len({path.provenance for path in paths if path.provenance != "unresolved"}) > 1
    if (training or is_disputed) and not any(path.is_reached for path in chosen):
        # As far as is seen the scripts only train; how functions act that none of them calls says little.
        values |= {"rule": None, "provenance": None}
        levels |= {"rule": "open", "provenance": "open"}
    if levels["rule"] == "open":
        values["provenance"], levels["provenance"] = None, "open"
    unread = [path for path in chosen if path.evaluates_heldout is None]
    is_unsure = any(path.chooses_levels for path in chosen) or (
        # One of several test environments may well be the held-out one.
        values["evaluates_heldout"] is False and any(path.constructor for path in unread)
    )
    if levels["evaluates_heldout"] == "likely" and is_unsure:
        values["evaluates_heldout"], levels["evaluates_heldout"] = None, "open"
    rule, provenance = values["rule"] or "unresolved", values["provenance"] or "unresolved"
    return AuditVerdict(values["evaluates_heldout"], rule, provenance, values["in_loop"], levels)


def _without_evaluation(
    training: Sequence[Judged], hints: Sequence[object], *, is_complete: bool
) -> AuditVerdict:
    rules = [item for item in training if not item.finding.is_value_based] or list(training)
    rules = [item for item in rules if item.finding.rule not in ("random", "constant")]
    found = {item.finding.rule for item in rules}
    if hints or not is_complete or not any(item.role.is_proved for item in training):
        return OPEN
    answered = found - {"unresolved"}
    rule = next(iter(answered)) if len(answered) == 1 else "unresolved"
    # An environment that nobody could find may be the test environment.
    is_seen = all(item.role.is_proved and (item.environments or item.play.site.fact) for item in training)
    if rule == "unresolved" and not is_seen:
        return OPEN
    is_proved = (
        is_seen and len(found) == 1 and not any(item.finding.doubts or item.play.doubts for item in rules)
    )
    levels = dict.fromkeys(FIELDS, "proved" if is_proved else "likely")
    return AuditVerdict(False, rule, "n/a", None, levels | ({"rule": "open"} if rule == "unresolved" else {}))


def _agreed(paths: Sequence[EvaluationPath], name: str) -> tuple[Any, str]:
    """What paths say about one field: proved where all do and agree, likely where those that answer mostly agree."""
    known = [path for path in paths if path.grades[name] != "open"]
    values = Counter(getattr(path, name) for path in known)
    if not values:
        return None, "open"
    if len(values) == 1:
        is_proved = len(known) == len(paths) and all(path.grades[name] == "proved" for path in paths)
        return next(iter(values)), "proved" if is_proved else "likely"
    most, count = values.most_common(1)[0]
    if count >= 0.75 * len(known) and count > 2:
        return most, "likely"  # one script of many may differ
    proved = {getattr(path, name) for path in known if path.grades[name] == "proved"}
    if len(proved) > 1:
        return None, "open"  # two ways that were both followed to the end
    best = max(path.score for path in known)
    top = {getattr(path, name) for path in known if path.score == best}
    return (top.pop(), "likely") if len(top) == 1 and best >= 3 else (None, "open")


def preferred(paths: Sequence[EvaluationPath]) -> list[EvaluationPath]:
    """The paths that a verdict is about.

    Evaluations before demonstrations and videos, paths that a script reaches before library functions that none
    reaches, held-out levels before others, paths next to training before others, policy-gradient agents before others.
    """
    chosen = list(paths)
    for test in (
        lambda path: path.is_reached,
        lambda path: not path.is_demonstration,
        lambda path: path.evaluates_heldout is True,
        lambda path: path.has_training and _speaks_for_policy(path),
        _speaks_for_policy,
    ):
        chosen = [path for path in chosen if test(path)] or chosen
    return chosen


def _speaks_for_policy(path: EvaluationPath) -> bool:
    """Whether a path is about a policy-gradient agent, or at least answers and is not about a value-based one."""
    return path.agent == "policy-gradient" or (path.agent is None and path.rule != "unresolved")


_LEVELS = pattern("levels")


def speaks_of_levels(index: Index) -> bool:
    """Whether anything in the code separates levels, tasks or splits by a name."""
    nodes = (node for module in index.modules.values() for node in module.order)
    names = (getattr(one, "id", None) or getattr(one, "attr", None) or getattr(one, "arg", None)
             or str(getattr(one, "value", ""))[:40] for one in nodes
             if isinstance(one, ast.Name | ast.Attribute | ast.arg | ast.keyword | ast.Constant))  # fmt: skip
    return any(map(_LEVELS.search, names))


def without_levels(verdict: AuditVerdict, paths: Sequence[EvaluationPath]) -> AuditVerdict:
    """A verdict whose held-out answer is open, where nothing in the repository separates levels: probably none are."""
    if verdict.evaluates_heldout is not None or verdict.levels.get("rule") == "open":
        return verdict
    if any(path.chooses_levels or (path.constructor and path.training_constructor) for path in paths):
        return verdict  # something was compared, and it may differ
    return replace(verdict, evaluates_heldout=False, levels={**verdict.levels, "evaluates_heldout": "likely"})


def evaluation_hints(index: Index, reached: set[str]) -> list[Mark]:
    """What in the given files speaks of an evaluation: flags, functions, modes and test environments."""
    modules = [index.modules[path] for path in sorted(reached) if path in index.modules]
    calls = [node for module in modules for node in module.order if isinstance(node, ast.Call)]
    called = {last_name(node.func) for node in calls}
    found = [(module.path, node, _hint(node, called)) for module in modules for node in module.order]
    return [Mark(path, getattr(node, "lineno", 1), words) for path, node, words in found if words]


def _hint(node: ast.AST, called: set[str]) -> str:
    """What a node says about an evaluation, if anything."""
    if isinstance(node, ast.FunctionDef):
        is_test = node.name in called and re.search(r"^_?(eval|test)", node.name)
        return f"function {node.name}" if is_test else ""
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        for item in node.keywords:
            if item.arg in ("deterministic", "evaluate", "eval_env"):
                return f"{item.arg}="
        if name == "eval" and isinstance(node.func, ast.Attribute) and not node.args:
            return "eval() of a network"
        is_call = re.match(r"evaluate|eval_mode$|set_exploration_type|rollout$", name)
        return f"call of {name}" if is_call else ""
    if isinstance(node, ast.Assign):
        word, value = last_name(node.targets[0]), node.value
        if "env" in word and EVALUATING.search(word) and isinstance(value, ast.Call):
            return f"environment {word}"
        is_flag = isinstance(value, ast.Constant) and isinstance(value.value, bool)
        return f"{word} is set" if is_flag and re.search(r"eval|test_mode", word) else ""
    return ""
