"""Scanning a repository: read, index, find where environments are stepped, judge, and give a verdict with its level."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.options import OptionTable
from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement import formats
from gapfloor.audit.judgement.configurations import configured_paths
from gapfloor.audit.judgement.learning import Updates
from gapfloor.audit.judgement.paths import describe_training, find_paths, inert_parameters
from gapfloor.audit.judgement.sites import SiteFinder
from gapfloor.audit.judgement.verdict import (
    OPEN,
    AuditVerdict,
    EvaluationPath,
    TrainingRollout,
    decide_verdict,
    evaluation_hints,
)
from gapfloor.audit.reading.index import Index, build_index, is_unit_test
from gapfloor.audit.reading.settings import Entry, find_script, parse_entry
from gapfloor.audit.reading.sources import Sources, Unread, read_target
from gapfloor.tables.readable import ReportResult


@dataclass(frozen=True, repr=False)
class ScanResult(ReportResult):
    """Everything a scan found."""

    row_names = ("paths", "scripts", "training")

    repo: str
    commit: str | None
    verdict: AuditVerdict
    paths: tuple[EvaluationPath, ...]
    training: tuple[TrainingRollout, ...]
    unread: tuple[Unread, ...]
    inert_flags: tuple[str, ...]
    is_complete: bool
    entry: str | None = None
    """The command to which the scan was restricted."""
    warnings: tuple[str, ...] = ()
    """What keeps the verdict from being firm."""
    scripts: tuple[tuple[str, AuditVerdict], ...] = ()
    """The verdict of each script."""
    hints: tuple[Mark, ...] = ()
    """Where no evaluation was found, or its rule is open: the lines that speak of one."""
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The lines of the files that evidence names."""
    failure: str = ""
    """Which paths do not state their rule, where that was required."""
    error: str = ""
    """What went wrong where the scanner itself failed; nothing follows from such a result."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor audit scan --json` prints."""
        return formats.as_document(self)

    def to_sarif(self) -> dict[str, Any]:
        """SARIF 2.1.0, for code-scanning pages."""
        return formats.as_sarif(self)

    def unstated(self) -> list[EvaluationPath]:
        """The evaluation paths whose rule is inherited or could not be read, and that no comment accepts."""
        return [path for path in self.paths if not path.is_stated and not path.is_accepted(self.texts)]

    def __repr__(self) -> str:
        return formats.as_markdown(self)


def failed_scan(target: str, error: Exception) -> ScanResult:
    """What is written when the scanner itself fails: no verdict, and why."""
    words = ("The scanner failed; nothing follows from this document.",)
    said = f"{type(error).__name__}: {error}"
    return ScanResult(target, None, OPEN, (), (), (), (), False, warnings=words, error=said)


def scan(target: str, *, entry: str | None = None) -> ScanResult:
    """Scan PATH, GIT_DIR or either with @COMMIT; nothing is run, imported or followed outside it.

    Args:
        target: A folder, a Python file, or a git directory, with @COMMIT for one commit.
        entry: The command that was used, e.g. `python train.py --config x.yaml`; only its script is
            scanned, with these settings.
    """
    sources = read_target(str(target))
    command = parse_entry(entry) if entry is not None else Entry("")
    with _deep_recursion():
        index = build_index(sources)
        only = find_script(command, list(index.modules)) if entry is not None else None
        evaluator = Evaluator(index, OptionTable(index, given=command.given, files=command.files))
        finder = SiteFinder(evaluator, only=only)
        plays = finder.plays()
        paths, training, recorded = find_paths(plays, Updates(evaluator))
        named = [one for one in index.settings if entry is None or one.path.endswith(command.files or " ")]
        paths += configured_paths(named)
        unread = [item for item in index.unread if item.may_play and not is_unit_test(item.file)]
        unfinished = list(dict.fromkeys(finder.unfinished))
        scripts_met = {*(item.play.script for item in training), *(path.script for path in paths)}
        modules = [index.modules[path] for path in scripts_met if path in index.modules]
        hints = evaluation_hints(index, {one for module in modules for one in index.reach(module)})
        is_read = not unfinished and not any(_loads(index, path.script, unread) for path in paths)
        unsure = [*hints, *unread, *recorded]
        verdict = decide_verdict(paths, training, hints=unsure, is_complete=is_read)
        by_script = {one.script: [path for path in paths if path.script == one.script] for one in paths}
        scripts = []
        for script, here in by_script.items():
            # A file that could not be read weakens the scripts that import it, nothing else.
            is_read = script not in unfinished and not _loads(index, script, unread)
            own = [item for item in training if item.play.script == script]
            scripts.append((script, decide_verdict(here, own, hints=(), is_complete=is_read)))
        rollouts = describe_training(training)
    functions = [item for module in index.modules.values() for item in module.functions.values()]
    inert = [text for function in functions for text in inert_parameters(function)]
    return ScanResult(
        repo=sources.name,
        commit=sources.commit,
        verdict=verdict,
        paths=tuple(paths),
        training=tuple(rollouts),
        unread=tuple(index.unread),
        inert_flags=tuple(dict.fromkeys(inert)),
        is_complete=not unfinished,
        entry=entry,
        warnings=_warnings(unread, unfinished, entry),
        scripts=tuple(scripts),
        hints=tuple(hints) if not paths or verdict.rule == "unresolved" else (),
        texts=_texts(sources, paths, rollouts, hints),
    )


def _loads(index: Index, script: str, unread: list[Unread]) -> bool:
    """Whether a script, or something that it imports, imports a file that could not be read."""
    if script not in index.modules:
        return False
    imported = {
        part
        for path in index.reach(index.modules[script])
        for dotted in index.modules[path].imports.values()
        for part in dotted.split(".")
    }
    for item in unread:
        name = item.file.rsplit("/", 1)[-1].removesuffix(".py")
        name = item.file.rsplit("/", 2)[-2] if item.file.endswith("/__init__.py") else name
        if item.file == script or (item.file.endswith(".py") and name in imported):
            return True
    return False


def _warnings(unread: list[Unread], unfinished: list[str], entry: str | None) -> tuple[str, ...]:
    found = []
    if unfinished:
        advice = f'Name the command that was used, e.g. --entry "python {unfinished[0]}", to read it alone.'
        if entry is not None:
            advice = "`gapfloor audit trace -- COMMAND` observes the script instead."
        shown = _listed(unfinished, 5)
        found.append(f"The scan ran out of its budget. Not followed to the end: {shown}. {advice}")
    if unread:
        shown = _listed([f"{item.file} ({item.reason})" for item in unread], 3)
        found.append(f"Not read, and may hold an evaluation: {shown}.")
    return tuple(found)


def _listed(names: list[str], most: int) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _texts(
    sources: Sources, paths: list[EvaluationPath], training: list[TrainingRollout], hints: list[Mark]
) -> dict[str, tuple[str, ...]]:
    shown = [*(path.evidence for path in paths), *(item.evidence for item in training), hints]
    wanted = {mark.file for marks in shown for mark in marks}
    files = [*sources.files, *sources.settings]
    return {item.path: tuple(item.text.splitlines()) for item in files if item.path in wanted}


@contextmanager
def _deep_recursion() -> Iterator[None]:
    # The evaluator's own limits end long before this; Python's default would end it in ordinary code.
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
