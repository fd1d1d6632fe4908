"""Running a study: ready tasks go to an executor until nothing is left that can be done.

A failed task is tried again, then reported with its log; tasks that depend on it wait, and the others continue.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from gapfloor.api.progress import duration
from gapfloor.study.executors import Ending, Executor, note_name
from gapfloor.study.graph import awaited_sentence, build_graph, without_awaited
from gapfloor.study.journal import Heartbeat, TaskJournal
from gapfloor.study.model import Study
from gapfloor.study.survey import Survey
from gapfloor.study.tasks import AnalyseTask, ReportTask, Task
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReadableResult

#: How often a task that failed of itself is begun, and one whose worker was lost.
ATTEMPTS, ATTEMPTS_IF_LOST = 2, 5


class Listener(Protocol):
    """Receives the progress of a study."""

    def start(self, todo: Sequence[Task], done: Sequence[Task]) -> None: ...

    def ended(self, ending: Ending, *, again: bool) -> None: ...


class StudyProgress:
    """Prints one line per task that ends, with the time left."""

    def __init__(self, study: Study, *, is_quiet: bool, workers: int = 1) -> None:
        self._study, self._is_quiet, self._workers = study, is_quiet, workers
        self._started = time.monotonic()

    def start(self, todo: Sequence[Task], done: Sequence[Task]) -> None:
        self._cost = {task.name: task.seconds(self._study) for task in todo}
        self._left, self._total = sum(self._cost.values()), sum(self._cost.values())
        self._count, self._n = 0, len(todo)
        self.tell(f"{counted(len(done), 'task')} done, {len(todo)} to do.")

    def ended(self, ending: Ending, *, again: bool) -> None:
        if ending.error:
            then = "it will be tried again" if again else "given up; the other tasks continue"
            self.tell(f"failed: {ending.task.name}: {ending.error} ({then})")
            if again:
                return
        self._count += 1
        self._left -= self._cost[ending.task.name]
        spent = time.monotonic() - self._started
        left = f", about {duration(self.seconds_left(spent))} left" if self._left > 1 else ""
        if not ending.error:
            self.tell(f"[{self._count}/{self._n}, {duration(spent)}{left}] {ending.task.name}")

    def seconds_left(self, spent: float) -> float:
        """The time left after so many seconds: the rates that ship count as much as a tenth of the study, or a minute.

        The first tasks are short ones, and their time is mostly the start of processes: alone they say little.
        """
        trust = max(60.0, 0.1 * self._total)
        per_second = (spent + trust / self._workers) / (self._total - self._left + trust)
        return self._left * per_second

    def tell(self, text: str) -> None:
        """Print a line, unless nobody wants one."""
        if not self._is_quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


@dataclass(repr=False)
class StudyOutcome(ReadableResult):
    """How a study ended."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Task and error."""
    blocked: list[str] = field(default_factory=list)
    """Tasks that need a failed one."""
    absent: list[str] = field(default_factory=list)
    """Trained agents that are not there yet."""
    waiting: list[str] = field(default_factory=list)
    """Tasks that need these agents."""
    awaited: str = ""
    """Which agents are not there yet, and where they are looked for."""
    study: str = ""
    """The study's name."""
    store: str = ""
    """The folder of its store."""

    def sentences(self) -> list[str]:
        """How many tasks are done, and where the page is."""
        if self.failed or self.absent:
            return [f"{self.study}: {counted(len(self.done), 'task')} done."]
        page = Path(self.store) / "report" / "index.html"
        return [f"{self.study}: all {len(self.done)} tasks are done. The page is {page}."]

    @property
    def failure(self) -> str:  # type: ignore[override]
        """What failed, or which agents are missing, and what to do."""
        if self.failed:
            first, error = next(iter(self.failed.items()))
            logs = Path(self.store) / "log" / "tasks"
            return (
                f"{counted(len(self.failed), 'task')} failed and {len(self.blocked)} depend on them. First: {first}: "
                f"{error} Logs are in {logs}; run the same command to try again."
            )
        if not self.absent:
            return ""
        return (
            f"{self.awaited} {counted(len(self.waiting), 'task')} (the analysis and the report among them) need these "
            "agents: add them and run the same command again. For a look at what is there: gapfloor report "
            f"{self.store}"
        )


def run_study(
    survey: Survey, *, make_executor: Callable[[str], Executor], listener: Listener
) -> StudyOutcome:
    """Do every task of the surveyed study that is not done; returns what became of them.

    `make_executor` is given the name of this process's note in the journal: it says that somebody waits.
    """
    study = survey.study
    graph = build_graph(study)
    # Analysis and report are made again when anything before them is.
    measured = [task for task in graph if not isinstance(task, AnalyseTask | ReportTask)]
    finished = [task for task in measured if task.is_done(survey)]
    done = {task.name for task in finished}
    absent = [run for run in study.absent_runs if f"train {run}" not in done]
    todo, waiting = without_awaited([task for task in graph if task.name not in done], absent)
    here: dict[str, Any] = {
        "study": study.name,
        "store": str(survey.store.root),
        "absent": absent,
        "waiting": waiting,
    }
    here["awaited"] = awaited_sentence(study, absent) if absent else ""
    if not any(task in measured for task in todo) and all(task.is_done(survey) for task in todo):
        there = [task for task in graph if task.name not in waiting]
        listener.start([], there)
        return StudyOutcome(done=[task.name for task in there], **here)
    listener.start(todo, finished)
    journal = TaskJournal(survey.store.root, study=note_name(study))
    with journal.coordinating() as (coordinator, heartbeat):
        executor = make_executor(coordinator)
        try:
            outcome = _Schedule(todo, done, executor, listener, journal).run(heartbeat)
            return replace(outcome, **here)
        finally:
            executor.close()


class _Schedule:
    """Which tasks wait, run, are done or have failed."""

    def __init__(
        self,
        todo: Sequence[Task],
        done: set[str],
        executor: Executor,
        listener: Listener,
        journal: TaskJournal,
    ) -> None:
        self._waiting = list(todo)
        self._outcome = StudyOutcome(done=sorted(done))
        self._done = set(done)
        self._attempts: dict[str, int] = {}
        self._n_running = 0
        self._executor, self._listener, self._journal = executor, listener, journal

    def run(self, heartbeat: Heartbeat = lambda: None) -> StudyOutcome:
        while self._waiting or self._n_running:
            heartbeat()
            self._begin_ready()
            if not self._n_running:
                break
            for ending in self._executor.wait(5.0):
                self._n_running -= 1
                self._settle(ending)
        self._outcome.blocked = [task.name for task in self._waiting]
        return self._outcome

    def _begin_ready(self) -> None:
        for task in list(self._waiting):
            if self._n_running >= self._executor.capacity:
                return
            if set(task.needs) <= self._done:
                self._waiting.remove(task)
                self._attempts[task.name] = self._attempts.get(task.name, 0) + 1
                self._executor.submit(task)
                self._n_running += 1

    def _settle(self, ending: Ending) -> None:
        task = ending.task
        if not ending.error:
            self._done.add(task.name)
            self._outcome.done.append(task.name)
            self._listener.ended(ending, again=False)
            return
        most = ATTEMPTS_IF_LOST if ending.is_lost else ATTEMPTS
        again = self._attempts[task.name] < most
        if again:
            self._waiting.insert(0, task)
        else:
            self._journal.fail(task.name, ending.error, ending.details)
            self._outcome.failed[task.name] = ending.error
        self._listener.ended(ending, again=again)
