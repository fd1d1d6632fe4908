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
    TrainingRollout,
    inert_parameters,
)
from gapfloor.audit.judgement.verdict import AuditVerdict, decide_verdict
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
    unread = [item for item in index.unread if item.may_play and not is_test_file(item.file)]
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


@contextmanager
def _deep_recursion() -> Iterator[None]:
    # The evaluator's own limits end long before this; Python's default would end it in ordinary code.
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def is_test_file(path: str) -> bool:
    """Whether a file that was not read is one of the repository's own unit tests or documentation."""
    parts = path.lower().split("/")
    return bool({"tests", "docs", "doc"} & set(parts[:-1])) or parts[-1].startswith("test_")
