"""Scanning a repository: read, index, walk, judge, and one verdict that prefers silence to a wrong answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.judgement.explore import Explorer
from gapfloor.audit.judgement.learning import LearningModel
from gapfloor.audit.judgement.paths import (
    EvaluationPath,
    PathFinder,
    Played,
    TrainingRollout,
    inert_parameters,
)
from gapfloor.audit.reading.index import build_index
from gapfloor.audit.reading.sources import Unread, read_target

#: A scan follows nothing new after this much processor time; the report then says that it is not complete.
MOST_SECONDS = 40.0
RULES = ("sampled", "argmax", "epsilon-greedy", "mixed", "unresolved")
PROVENANCES = (
    "explicit-call-site",
    "default-argument",
    "training-rollout",
    "config-option",
    "n/a",
    "unresolved",
)


@dataclass(frozen=True)
class AuditVerdict:
    """What the repository does, about its policy-gradient agent where it has several."""

    evaluates_heldout: bool | None
    rule: str
    provenance: str
    in_loop: bool | None


@dataclass(frozen=True)
class ScanResult:
    """Everything a scan found."""

    repo: str
    commit: str | None
    verdict: AuditVerdict
    paths: tuple[EvaluationPath, ...]
    training: tuple[TrainingRollout, ...]
    unread: tuple[Unread, ...]
    inert_flags: tuple[str, ...]
    is_complete: bool


def scan(target: str) -> ScanResult:
    """Scan PATH, GIT_DIR or either with @COMMIT; nothing is run, imported or followed outside it."""
    deadline = time.process_time() + MOST_SECONDS
    sources = read_target(str(target))
    with _deep_recursion():
        index = build_index(sources)
        evaluator = Evaluator(index, deadline=deadline)
        exploration = Explorer(evaluator).explore()
        finder = PathFinder(evaluator, LearningModel(evaluator))
        paths, training = finder.paths(exploration.events)
    is_complete = exploration.is_complete and finder.is_complete and not evaluator.is_exhausted
    unread = [item for item in index.unread if item.reason != "notebook"]
    verdict = decide_verdict(paths, training, is_complete=is_complete and not unread)
    functions = [item for module in index.modules.values() for item in module.functions.values()]
    inert = [text for function in functions for text in inert_parameters(function)]
    return ScanResult(
        repo=sources.name,
        commit=sources.commit,
        verdict=verdict,
        paths=tuple(paths),
        training=tuple(finder.describe_training(training)),
        unread=tuple(index.unread),
        inert_flags=tuple(dict.fromkeys(inert)),
        is_complete=is_complete,
    )


def decide_verdict(paths: list[EvaluationPath], training: list[Played], *, is_complete: bool) -> AuditVerdict:
    """The verdict: agreement of the paths that matter, or null and unresolved."""
    heldout = [path for path in paths if path.evaluates_heldout is True]
    if not heldout:
        return _without_heldout(paths, training, is_complete=is_complete)
    chosen = _preferred(heldout)
    return AuditVerdict(
        evaluates_heldout=True,
        rule=_agreed([path.rule for path in chosen]),
        provenance=_agreed([path.provenance for path in chosen]),
        in_loop=_agreed_truth([path.in_loop for path in chosen]),
    )


def _without_heldout(
    paths: list[EvaluationPath], training: list[Played], *, is_complete: bool
) -> AuditVerdict:
    rules = [item.finding.rule for item in training if item.agent != "value-based"]
    rules = rules or [item.finding.rule for item in training]
    is_certain = is_complete and bool(training) and not any(item.is_ambiguous for item in training)
    is_false = is_certain and all(path.evaluates_heldout is False for path in paths)
    if is_false and not paths:
        # Every environment reaches training only; the rule is that of the training rollout.
        return AuditVerdict(False, _agreed(rules), "n/a", None)
    known = _preferred(paths)
    return AuditVerdict(
        evaluates_heldout=False if is_false else None,
        rule=_agreed([path.rule for path in known]),
        provenance=_agreed([path.provenance for path in known]),
        in_loop=_agreed_truth([path.in_loop for path in known]),
    )


def _preferred(paths: list[EvaluationPath]) -> list[EvaluationPath]:
    """The paths a verdict is about: beside training and of a policy-gradient agent, where there are such."""
    groups = (
        [path for path in paths if path.has_training and path.agent != "value-based"],
        [path for path in paths if path.agent != "value-based"],
        paths,
    )
    return next((group for group in groups if group), [])


def _agreed(values: list[str]) -> str:
    return values[0] if values and len(set(values)) == 1 else "unresolved"


def _agreed_truth(values: list[bool | None]) -> bool | None:
    return values[0] if values and len(set(values)) == 1 else None


@contextmanager
def _deep_recursion() -> Iterator[None]:
    # The evaluator's own limits end long before this; Python's default would end it in ordinary code.
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
