"""The rows of a scan, and from them one verdict per script and one for the repository.

Absence must be proved: "no evaluation" is said only where every environment reaches training alone and nothing in the
code that was reached speaks of an evaluation.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gapfloor.audit.interpreter.facts import pattern, table
from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.learning import EVALUATING
from gapfloor.audit.reading.index import Index, last_name
from gapfloor.json_values import jsonable

if TYPE_CHECKING:
    from gapfloor.audit.judgement.paths import Judged

#: The four answers, and the words before them in a report.
FIELDS = {
    "evaluates_heldout": "held out", "rule": "rule", "provenance": "provenance", "in_loop": "in-loop",
}  # fmt: skip
LEVELS = ("proved", "likely", "open")
_DEMO = pattern("demo")
_DEMO_SCRIPT = pattern("demo_script")
_IGNORE = re.compile(r"#\s*gapfloor:\s*ignore\b")
VALUE_BASED = pattern("value_based")


@dataclass(frozen=True)
class EvaluationPath:
    """One way in which a script measures a policy."""

    script: str
    rule: str
    provenance: str
    in_loop: bool | None
    """Whether weights change while the environment is played."""
    evaluates_heldout: bool | None
    """Whether the levels differ from those of training."""
    step: Mark
    """The line that steps the environment."""
    action: str
    """The expression that is handed to the environment."""
    levels: str | None = None
    training_levels: str | None = None
    """The training levels that they were compared with."""
    constructor: str | None = None
    training_constructor: str | None = None
    agent: str | None = None
    """value-based or policy-gradient, where that is known."""
    inert_flags: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    """What the action may be, where the rule is open."""
    evidence: tuple[Mark, ...] = ()
    doubts: tuple[str, ...] = ()
    """What had to be assumed."""
    grades: Mapping[str, str] = field(default_factory=dict)
    """proved, likely or open, for each field."""
    has_training: bool = False
    functions: tuple[str, ...] = ()
    is_reached: bool = True
    score: int = 0
    reports: bool = True
    """Whether anything on the way to its step sums or keeps what episodes return."""
    chooses_levels: bool = False
    """Whether levels are chosen when an episode begins, otherwise than in training."""

    @property
    def makes_pictures(self) -> bool:
        """Whether it makes pictures or measures time, by the names of its script and functions."""
        return any(_DEMO.search(word) for word in (self._stem, *self.functions))

    @property
    def is_demonstration(self) -> bool:
        """Whether it makes pictures or data, or only shows an agent at play, by its names."""
        return self.makes_pictures or bool(_DEMO_SCRIPT.search(self._stem))

    @property
    def _stem(self) -> str:
        return self.script.rsplit("/", 1)[-1].rsplit(".", 1)[0]

    @property
    def chosen_by(self) -> Mark | None:
        """The line of the primitive that chose the action."""
        words = {*table("words")["primitives"].values(), "the network's answer"}
        return next((mark for mark in self.evidence if mark.what in words), None)

    @property
    def decided_by(self) -> Mark | None:
        """The line of the flag, default or setting that decides the rule."""
        wanted = table("words")["deciders"].get(self.provenance)
        return next((mark for mark in self.evidence[::-1] if wanted and wanted in mark.what), None)

    @property
    def is_stated(self) -> bool:
        """Whether its rule is a choice that somebody made and that can be seen."""
        return self.provenance in ("explicit-call-site", "config-option")

    def is_accepted(self, texts: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether a comment on the stepping line, or on the line above it, accepts it."""
        near = texts.get(self.step.file, ())[max(self.step.line - 2, 0) : self.step.line]
        return any(_IGNORE.search(line) for line in near)

    def to_dict(self) -> dict[str, Any]:
        """Its quantities as JSON."""
        return {key: jsonable(getattr(self, key)) for key in table("words")["quantities"]}


@dataclass(frozen=True)
class TrainingRollout:
    """Where a script plays to learn."""

    script: str
    rule: str
    levels: str | None
    constructor: str | None
    evidence: tuple[Mark, ...]


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


def evaluation_hints(index: Index, reached: set[str]) -> list[Mark]:
    """What in the given files speaks of an evaluation: flags, functions, modes and test environments."""
    modules = [index.modules[path] for path in sorted(reached) if path in index.modules]
    called = {last_name(call.func) for module in modules for call, _ in module.calls}
    found = [(module.path, node, _hint(node, called)) for module in modules for node in module.nodes]
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
