"""What can be done with a study: run it, see how far it is, estimate its cost, clean up after it.

These are the methods of `Study` and the commands of `gapfloor study`.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.progress import is_watched
from gapfloor.machine import available_cores
from gapfloor.play.campaign import backend_for
from gapfloor.policies.backends import usual_backend
from gapfloor.records.atomic import remove_leftovers
from gapfloor.records.store import Store
from gapfloor.study.awaited import awaited_sentence
from gapfloor.study.costs import CostEstimate, estimate
from gapfloor.study.executors import Executor, LocalExecutor, RayExecutor, StudyAssignment, note_name
from gapfloor.study.graph import build_graph
from gapfloor.study.journal import TaskJournal
from gapfloor.study.model import Study
from gapfloor.study.progress import StudyProgress, duration
from gapfloor.study.runner import Listener, StudyOutcome, run_study
from gapfloor.study.survey import Survey, check_runs
from gapfloor.study.tasks import TrainTask
from gapfloor.text_tables import ReadableResult, TextTable, counted

_STATES = ("done", "running", "failed", "missing")


@dataclass(frozen=True, repr=False)
class StudyStatus(ReadableResult):
    """How far a study is."""

    study: str
    """The study's name."""
    tasks: Mapping[str, Counter[str]]
    """Kind of task -> how many are done, running, failed and missing."""
    running: tuple[str, ...]
    """Tasks that are running."""
    failed: Mapping[str, str]
    """Tasks that failed -> the error, and where its log is."""
    damaged: tuple[str, ...]
    """Cells that are cut or altered, and will be measured again."""
    absent: tuple[str, ...] = ()
    """Trained agents that are not there yet."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor study status --json` prints."""
        return {
            "study": self.study, "tasks": {kind: dict(counts) for kind, counts in self.tasks.items()},
            "running": list(self.running), "failed": list(self.failed), "damaged": list(self.damaged),
            "absent": list(self.absent),
        }  # fmt: skip

    def table(self) -> TextTable:
        """Tasks by kind and state."""
        rows = [[kind, *(str(counts[state]) for state in _STATES)] for kind, counts in self.tasks.items()]
        return ["task", *_STATES], rows

    def sentences(self) -> list[str]:
        """What is running, failed and damaged."""
        return [
            *(f"running: {name}" for name in self.running),
            *(f"failed: {name}: {words}" for name, words in self.failed.items()),
            *(f"damaged, will be measured again: {name}" for name in self.damaged),
            *(f"not there yet: {run}" for run in self.absent),
        ]


@dataclass(frozen=True, repr=False)
class StudyPreview(ReadableResult):
    """What a study will do and cost."""

    study: Study
    size: CostEstimate
    cores: int

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor study preview --json` prints."""
        size = self.size
        return {
            "study": self.study.name, "runs": size.n_runs, "cells": size.n_cells,
            "addendum_cells": size.n_addendum_cells, "floor_cells": size.n_floor_cells,
            "core_seconds": size.core_seconds, "cores": self.cores,
            "seconds": size.seconds_on(self.cores), "disk_bytes": size.disk_bytes,
        }  # fmt: skip

    def tables(self) -> list[TextTable]:
        """None: a preview is a few lines."""
        return []

    def sentences(self) -> list[str]:
        """Runs, cells, time by kind of task, and disk."""
        study, size = self.study, self.size
        lines = [f"{study.name}: {study.description}" if study.description else study.name]
        lines.append(f"{counted(size.n_runs, 'run')}, {counted(size.n_cells, 'cell')}")
        if size.n_addendum_cells:
            rules = ", ".join(study.addendum.rules)
            lines.append(f"addendum ({rules}): {counted(size.n_addendum_cells, 'cell')}")
        lines.append(f"floors ({', '.join(study.references)}): {counted(size.n_floor_cells, 'cell')}")
        lines += [
            f"  {kind:10} {duration(seconds):>12} of one core" for kind, seconds in size.core_seconds.items()
        ]
        absent = study.absent_runs
        return [
            *lines,
            *([awaited_sentence(study, absent)] if absent else []),
            f"about {duration(size.seconds_on(self.cores))} on {counted(self.cores, 'core')}, "
            f"{size.disk_bytes / 2**20:,.0f} MB of disk",
        ]


def run(
    study: Study,
    *,
    store: str | Path | None,
    workers: int | None,
    ray: str | None,
    must_authenticate: bool,
    executor: Callable[[StudyAssignment], Executor] | None,
    progress: Listener | bool | None,
) -> StudyOutcome:
    """Do what is missing; see `Study.run`."""
    root = Store(store or study.name).root.resolve()
    opened = Store(root)
    opened.prepare()
    opened.write_order(games=study.games, agents=study.agents)
    backend = backend_for(opened, study.evaluation.backend) or usual_backend("cpu")

    def make_executor(coordinator: str) -> Executor:
        assignment = StudyAssignment(study, str(root), backend, coordinator)
        if executor is not None:
            return executor(assignment)
        if ray is not None:
            return RayExecutor(assignment, address=ray, capacity=workers, must_authenticate=must_authenticate)
        return LocalExecutor(assignment, workers=workers or available_cores())

    if progress is None or isinstance(progress, bool):
        is_shown = is_watched() if progress is None else progress
        progress = StudyProgress(study, is_quiet=not is_shown)
    return run_study(Survey(study, root), make_executor=make_executor, listener=progress)


def status(study: Study, *, store: str | Path | None) -> StudyStatus:
    """How far the study is; see `Study.status`."""
    root = Store(store or study.name).root
    survey = Survey(study, root)
    journal = TaskJournal(root, study=note_name(study))
    running, failures = journal.running(), journal.failures()
    states: dict[str, Counter[str]] = {}
    listed: dict[str, list[str]] = {"running": [], "failed": []}
    for task in build_graph(study):
        state = "missing"
        if task.name in running:
            state = "running"
        elif task.is_done(survey):
            state = "done"
        elif task.name in failures:
            state = "failed"
        states.setdefault(task.kind, Counter())[state] += 1
        if state in listed:
            listed[state].append(task.name)
    absent = tuple(run for run in study.absent_runs if not (root / "runs" / run).is_dir())
    failed = {name: f"{failures[name].error} (log: {failures[name].log})" for name in listed["failed"]}
    return StudyStatus(study.name, states, tuple(listed["running"]), failed, tuple(survey.damaged), absent)


def preview(study: Study, *, store: str | Path | None, workers: int | None) -> StudyPreview:
    """What the study will do and cost; see `Study.preview`."""
    check_runs(study, Store(store or study.name).root)
    return StudyPreview(study, estimate(study), workers or available_cores())


def clean(study: Study, *, store: str | Path | None, yes: bool) -> tuple[list[Path], int]:
    """Folders that a finished study no longer needs, and their bytes; deleted with `yes`."""
    root = Store(store or study.name).root
    survey = Survey(study, root)
    trained = [task for task in build_graph(study) if isinstance(task, TrainTask) and task.is_done(survey)]
    folders = [root / "runs" / task.spec.run / "resume" for task in trained]
    found = [folder for folder in [*folders, root / "log" / "tasks"] if folder.is_dir()]
    size = sum(path.stat().st_size for folder in found for path in folder.rglob("*") if path.is_file())
    if yes:
        for folder in found:
            shutil.rmtree(folder)
        remove_leftovers(root)
    return found, size
