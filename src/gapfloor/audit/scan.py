"""Scanning a repository: read, index, walk, judge, and one verdict that prefers silence to a wrong answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gapfloor.audit.interpreter.evaluator import Evaluator
from gapfloor.audit.interpreter.options import OptionTable
from gapfloor.audit.judgement.explore import Explorer
from gapfloor.audit.judgement.learning import LearningModel
from gapfloor.audit.judgement.paths import EvaluationPath, PathFinder, TrainingRollout, inert_parameters
from gapfloor.audit.judgement.rllib import rllib_paths
from gapfloor.audit.judgement.rllib_code import rllib_code_paths
from gapfloor.audit.judgement.verdict import AuditVerdict, decide_verdict
from gapfloor.audit.reading.entry import Entry, find_script, parse_entry
from gapfloor.audit.reading.index import Index, build_index
from gapfloor.audit.reading.sources import SettingsFile, SourceFile, Sources, Unread, read_target
from gapfloor.text_tables import ReportResult

if TYPE_CHECKING:
    from gapfloor.audit.judgement.findings import Finding, PathChanges

RULES = ("sampled", "argmax", "epsilon-greedy", "mixed", "unresolved")
PROVENANCES = (
    "explicit-call-site",
    "default-argument",
    "training-rollout",
    "config-option",
    "n/a",
    "unresolved",
)


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
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The lines of the files that evidence names."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor audit scan --json` prints."""
        from gapfloor.audit.judgement.formats import as_document

        return as_document(self)

    def to_sarif(self, *, accepted: set[str] | None = None) -> dict[str, Any]:
        """SARIF 2.1.0, for code-scanning pages; `accepted` holds the fingerprints of a baseline."""
        from gapfloor import __version__
        from gapfloor.audit.judgement.formats import as_sarif

        return as_sarif(self, version=__version__, accepted=accepted)

    def unstated(self) -> list[Finding]:
        """The evaluation paths whose rule is inherited or could not be read."""
        from gapfloor.audit.judgement.findings import find_unstated

        return find_unstated(self.paths, self.texts)

    def changes_since(self, earlier: ScanResult) -> PathChanges:
        """The evaluation paths that were added or removed since another scan."""
        from gapfloor.audit.judgement.findings import compare_scans

        return compare_scans((earlier.paths, earlier.texts), (self.paths, self.texts))

    def __repr__(self) -> str:
        from gapfloor.audit.judgement.formats import as_markdown

        return as_markdown(self)


def scan(target: str, *, entry: str | None = None) -> ScanResult:
    """Scan PATH, GIT_DIR or either with @COMMIT; nothing is run, imported or followed outside it.

    Args:
        target: A folder, a Python file, or a git directory, with @COMMIT for one commit.
        entry: The command that was used, e.g. `python train.py --config x.yaml`; the scan is then about its script,
            with its settings.
    """
    sources = read_target(str(target))
    command = parse_entry(entry) if entry is not None else None
    with _deep_recursion():
        index = build_index(sources)
        only = find_script(command, list(index.modules)) if command is not None else None
        evaluator = Evaluator(index, options=_options(index, command))
        exploration = Explorer(evaluator, only=only).explore()
        finder = PathFinder(evaluator, LearningModel(evaluator))
        paths, training = finder.paths(exploration.events, exploration.served)
        paths += rllib_paths(_experiment_files(index, command))
        paths += rllib_code_paths(evaluator, only=only)
    is_complete = exploration.is_complete and finder.is_complete and not evaluator.is_exhausted
    unread = [item for item in index.unread if item.may_play and not is_test_file(item.file)]
    if only is not None:
        unread = [item for item in unread if _is_loadable(item.file, index, only)]
    is_firm = is_complete and not unread
    functions = [item for module in index.modules.values() for item in module.functions.values()]
    inert = [text for function in functions for text in inert_parameters(function)]
    by_script = []
    for script in dict.fromkeys(path.script for path in paths):
        here = [path for path in paths if path.script == script]
        rollouts = [item for item in training if item.event.script == script]
        by_script.append((script, decide_verdict(here, rollouts, is_complete=is_firm)))
    return ScanResult(
        repo=sources.name,
        commit=sources.commit,
        verdict=decide_verdict(paths, training, is_complete=is_firm),
        paths=tuple(paths),
        training=tuple(finder.describe_training(training)),
        unread=tuple(index.unread),
        inert_flags=tuple(dict.fromkeys(inert)),
        is_complete=is_complete,
        entry=entry,
        warnings=_warnings(
            is_complete=is_complete, unread=unread, unfinished=exploration.unfinished, entry=only
        ),
        scripts=tuple(by_script),
        texts=_texts(sources, paths),
    )


def _is_loadable(file: str, index: Index, script: str) -> bool:
    """Whether a script, or something that it imports, imports a file that could not be read; or it is the script."""
    if file == script:
        return True
    name = file.rsplit("/", 1)[-1].removesuffix(".py")
    package = file.rsplit("/", 2)[-2] if file.endswith("/__init__.py") else name
    imported = {
        part
        for path in index.reach(index.modules[script])
        for dotted in index.modules[path].imports.values()
        for part in dotted.split(".")
    }
    return file.endswith(".py") and package in imported


def _experiment_files(index: Index, command: Entry | None) -> list[SettingsFile]:
    """The configuration files that a scan is about: those that the command names, or all."""
    if command is None:
        return index.settings
    return [file for file in index.settings if any(file.path.endswith(name) for name in command.files)]


def _options(index: Index, command: Entry | None) -> OptionTable:
    if command is None:
        return OptionTable(index)
    return OptionTable(index, given=command.given, files=command.files, gin=command.gin)


def _warnings(
    *, is_complete: bool, unread: list[Unread], unfinished: list[str], entry: str | None
) -> tuple[str, ...]:
    found = []
    if not is_complete:
        left = [path for path in unfinished if path != entry]
        words = "The scan ran out of its budget: what is missing here may still be in the code."
        if left:
            shown, more = ", ".join(left[:5]), f" and {len(left) - 5} more" if len(left) > 5 else ""
            words += (
                f" Not followed to the end: {shown}{more}."
                f' Name the command that was used, e.g. --entry "python {left[0]}", to read that script alone.'
            )
        elif entry is not None:
            words += f" {entry} alone is too large; `gapfloor audit trace -- COMMAND` observes it instead."
        else:
            words += ' Name the command that was used with --entry "python SCRIPT", or scan a sub-folder.'
        found.append(words)
    if unread:
        names = ", ".join(f"{item.file} ({item.reason})" for item in unread[:3])
        more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
        found.append(f"Not read, and may hold an evaluation: {names}{more}.")
    return tuple(found)


def _texts(sources: Sources, paths: list[EvaluationPath]) -> dict[str, tuple[str, ...]]:
    wanted = {mark.file for path in paths for mark in path.evidence}
    files: list[SourceFile | SettingsFile] = [*sources.files, *sources.settings]
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


def is_test_file(path: str) -> bool:
    """Whether a file that was not read is one of the repository's own unit tests or documentation."""
    parts = path.lower().split("/")
    return bool({"tests", "docs", "doc"} & set(parts[:-1])) or parts[-1].startswith("test_")
