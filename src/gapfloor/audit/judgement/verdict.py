"""From evaluation paths to one verdict per script and one for the repository.

A verdict is firm only where every path that it speaks for agrees and nothing blocks it: a file that could not be read,
a part of the code that could not be followed, a budget that ran out. Silence is better than a wrong answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gapfloor.audit.judgement.explore import EVALUATING
from gapfloor.audit.judgement.paths import EvaluationPath, Played
from gapfloor.audit.reading.index import last_name

_DEMO = re.compile(
    r"visual|render|gif|video|demo|watch|record|debug|collect|viewer|plot|figure|saliency|interactive|random_agent",
    re.IGNORECASE,
)
_DEMO_SCRIPT = re.compile(r"(^|_)play($|_)|enjoy|example|tutorial", re.IGNORECASE)


@dataclass(frozen=True)
class AuditVerdict:
    """What the repository does, about its policy-gradient agent where it has several."""

    evaluates_heldout: bool | None
    rule: str
    provenance: str
    in_loop: bool | None


def decide_verdict(
    paths: Sequence[EvaluationPath], training: Sequence[Played], *, is_complete: bool
) -> AuditVerdict:
    """The verdict: agreement of the paths that matter, or null and unresolved."""
    if not is_complete:
        return AuditVerdict(None, "unresolved", "unresolved", None)
    chosen = preferred(paths)
    heldout = [path for path in chosen if path.evaluates_heldout is True]
    if heldout:
        return AuditVerdict(True, *_agreement(heldout))
    rollouts = [item.finding.rule for item in training if item.agent != "value-based"]
    rollouts = rollouts or [item.finding.rule for item in training]
    is_ambiguous = any(item.is_ambiguous for item in training)
    if not paths:
        # Every environment reaches training only; the rule is that of the training rollout.
        named = [item for item in training if _is_named_a_test(item)]
        # Of two environments that are stepped during training, the one that is called a test may be one.
        is_certain = bool(training) and not is_ambiguous and len(named) in (0, len(training))
        is_certain = is_certain and not any(item.has_other_rule for item in training)
        if is_certain:
            return AuditVerdict(False, _agreed(rollouts), "n/a", None)
        return AuditVerdict(None, "unresolved", "unresolved", None)
    is_false = all(path.evaluates_heldout is False for path in chosen) and not is_ambiguous
    return AuditVerdict(False if is_false else None, *_agreement(chosen))


def preferred(paths: Sequence[EvaluationPath]) -> list[EvaluationPath]:
    """The paths that a verdict is about.

    Evaluations before demonstrations and videos, paths that a script reaches before library functions that none
    reaches, held-out levels before others, paths next to training before others, policy-gradient agents before others.
    """
    chosen = list(paths)
    for test in (
        lambda path: path.is_reached,
        lambda path: not is_demonstration(path),
        lambda path: path.evaluates_heldout is True,
        lambda path: path.has_training and path.agent != "value-based",
        lambda path: path.agent != "value-based",
    ):
        chosen = [path for path in chosen if test(path)] or chosen
    return chosen


def is_demonstration(path: EvaluationPath) -> bool:
    """Whether a path makes pictures or data, by the names of its script and functions."""
    script = path.script.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return any(_DEMO.search(word) for word in (script, *path.functions)) or bool(_DEMO_SCRIPT.search(script))


def _is_named_a_test(item: Played) -> bool:
    function = item.event.node.func
    return isinstance(function, ast.Attribute) and bool(EVALUATING.search(last_name(function.value)))


def _agreement(paths: Sequence[EvaluationPath]) -> tuple[str, str, bool | None]:
    return (
        _agreed([path.rule for path in paths]),
        _agreed([path.provenance for path in paths]),
        _agreed_truth([path.in_loop for path in paths]),
    )


def _agreed(values: list[str]) -> str:
    return values[0] if values and len(set(values)) == 1 else "unresolved"


def _agreed_truth(values: list[bool | None]) -> bool | None:
    return values[0] if values and len(set(values)) == 1 else None
