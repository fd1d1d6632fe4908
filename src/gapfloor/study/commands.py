"""What can be done with a study: run it, and see how far it is and what it costs.

These functions are the methods of `Study` and the commands of `gapfloor study`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.progress import duration, is_watched
from gapfloor.machine import available_cores, check_workers
from gapfloor.play.campaign import backend_for
from gapfloor.policies.backends import usual_backend
from gapfloor.records.store import Store
from gapfloor.study.executors import Executor, LocalExecutor, RayExecutor, note_name
from gapfloor.study.graph import CostEstimate, build_graph, estimate
from gapfloor.study.journal import TaskJournal
from gapfloor.study.model import Study
from gapfloor.study.runner import StudyOutcome, StudyProgress, do_tasks
from gapfloor.study.survey import Survey
from gapfloor.study.tasks import Workplace
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of


@dataclass(frozen=True, repr=False, kw_only=True)
class StudyStatus(ReadableResult):
    """How far a study is, and what all of it costs."""

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
    size: CostEstimate
    """Runs, cells, core seconds and disk of the whole study, done or not."""
    cores: int
    """The number of cores for the estimate of time."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor study status --json` prints."""
        return {**super().to_dict(), "failed": list(self.failed), "seconds": self.size.seconds_on(self.cores)}

    def table(self) -> Table:
        """Tasks by kind and state."""
        states = ("done", "running", "failed", "missing")
        rows = [
            {"task": kind, **{state: counts[state] for state in states}}
            for kind, counts in self.tasks.items()
        ]
        return table_of("tasks", rows)

    def sentences(self) -> list[str]:
        """What is running, failed and damaged, and what the whole study costs."""
        size = self.size
        addendum = f", {counted(size.n_addendum_cells, 'cell')} of the addendum" * bool(size.n_addendum_cells)
        hours = ", ".join(f"{kind} {duration(seconds)}" for kind, seconds in size.core_seconds.items())
        return [
            *(f"running: {name}" for name in self.running),
            *(f"failed: {name}: {words}" for name, words in self.failed.items()),
            *(f"damaged, will be measured again: {name}" for name in self.damaged),
            f"The whole study: {counted(size.n_runs, 'run')}, {counted(size.n_cells, 'cell')}{addendum}, "
            f"{counted(size.n_floor_cells, 'cell')} of references.",
            f"About {duration(size.seconds_on(self.cores))} on {counted(self.cores, 'core')} and "
            f"{size.disk_bytes / 2**20:,.0f} MB of disk; one core would need: {hours}.",
        ]


def run(
    study: Study | str | Path,
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    ray: str | None = None,
    without_authentication: bool = False,
    progress: bool | None = None,
) -> StudyOutcome:
    """Do what is missing in a study: train, calibrate, evaluate, analyse and report.

    Run the same command again to resume.

    Args:
        study: The study file (TOML).
        store: Folder of the study's store (default: the study's name).
        workers: Number of worker processes (default: one per core).
        ray: Run on a Ray cluster instead: auto, or its address.
        without_authentication: Use a Ray cluster that asks for no token: everyone who can reach it can run code with
            your rights.
        progress: Whether a line is printed per task. None: on a terminal or in a notebook.

    Returns:
        Which tasks are done, which failed, and which need a failed one.

    Command line:
        gapfloor study run studies/demo.toml --store demo-store
        gapfloor study run studies/paper-8m.toml --ray auto --store /shared/paper-8m
    """
    check_workers(workers)
    study = study if isinstance(study, Study) else Study.read(study)
    opened = Store(Store(store or study.name).root.resolve())
    journal = TaskJournal(opened.root, study=note_name(study))
    others = journal.workers()
    opened.prepare()
    games = [study.protocol(game).engines[0].game for game in study.games]
    opened.write_order(games=games, agents=study.agents)
    survey = Survey(study, opened.root)
    *measured, report = build_graph(study)
    done = {task.name for task in measured if task.is_done(survey)}
    # The report is made again when anything before it is.
    if len(done) == len(measured) and report.is_done(survey):
        done.add(report.name)
    todo = [task for task in (*measured, report) if task.name not in done]
    shown = StudyProgress(
        {task.name: task.seconds(study) for task in todo},
        is_quiet=not (is_watched() if progress is None else progress),
        workers=workers or available_cores(),
    )
    for other in others[:1]:
        shown.tell(
            f"Another study run works on this store: {other.words}. Both can continue; some tasks may be done twice."
        )
    shown.tell(f"{counted(len(done), 'task')} done, {len(todo)} to do.")
    outcome = StudyOutcome(done=sorted(done), study=study.name, store=str(opened.root))
    if not todo:
        return outcome
    backend = backend_for(survey.store.found, study.evaluation.backend) or usual_backend("cpu")
    workplace = Workplace(study, opened.root, backend)
    executor: Executor
    if ray is None:
        executor = LocalExecutor(workplace, workers=workers or available_cores())
    else:
        executor = RayExecutor(
            workplace, address=ray, capacity=workers, must_authenticate=not without_authentication
        )
    try:
        do_tasks(todo, outcome, executor=executor, progress=shown, journal=journal)
    finally:
        executor.close()
    return outcome


def status(
    study: Study | str | Path, *, store: str | Path | None = None, workers: int | None = None
) -> StudyStatus:
    """Show what is done, running, failed and missing, and about how much time and disk the whole study needs.

    Args:
        study: The study file (TOML).
        store: Folder of the study's store (default: the study's name); a folder that `run` refuses is refused here
            too.
        workers: Number of cores for the estimate of time (default: those of this machine).

    Returns:
        Tasks by kind and state; what runs, failed or is damaged; runs, cells, time and disk.

    Command line:
        gapfloor study status studies/demo.toml --store demo-store
        gapfloor study status studies/paper-8m.toml --workers 64
    """
    check_workers(workers)
    study = study if isinstance(study, Study) else Study.read(study)
    root = Store(store or study.name).root
    survey = Survey(study, root)
    journal = TaskJournal(root, study=note_name(study))
    running, failures = journal.running(), journal.failures()
    states: dict[str, Counter[str]] = {}
    listed: dict[str, list[str]] = {"running": [], "failed": []}
    for task in build_graph(study):
        if task.name in running:
            state = "running"
        elif task.is_done(survey):
            state = "done"
        else:
            state = "failed" if task.name in failures else "missing"
        states.setdefault(task.kind, Counter())[state] += 1
        if state in listed:
            listed[state].append(task.name)
    return StudyStatus(
        study=study.name,
        tasks=states,
        running=tuple(listed["running"]),
        failed={name: "{} (log: {})".format(*failures[name]) for name in listed["failed"]},
        damaged=tuple(path.stem for path in survey.store.damaged),
        size=estimate(study),
        cores=workers or available_cores(),
    )
