"""Running a study: ready tasks go to an executor until nothing is left that can be done.

A failed task is tried again, then reported with its log; tasks that depend on it wait, and the others continue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from gapfloor.study.awaited import without_awaited
from gapfloor.study.executors import Ending, Executor, note_name
from gapfloor.study.graph import build_graph
from gapfloor.study.journal import Heartbeat, TaskJournal
from gapfloor.study.survey import Survey
from gapfloor.study.tasks import AnalyseTask, ReportTask, Task
from gapfloor.text_tables import ReadableResult, TextTable

#: How often a task that failed of itself is begun, and one whose worker was lost.
ATTEMPTS, ATTEMPTS_IF_LOST = 2, 5


class Listener(Protocol):
    """Receives the progress of a study."""

    def start(self, todo: Sequence[Task], done: Sequence[Task]) -> None: ...

    def begun(self, task: Task) -> None: ...

    def ended(self, ending: Ending, *, again: bool) -> None: ...


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

    def table(self) -> TextTable:
        """How many tasks are done, failed, blocked and waiting for agents."""
        counts = [len(self.done), len(self.failed), len(self.blocked), len(self.waiting)]
        return ["done", "failed", "blocked", "waiting"], [[str(count) for count in counts]]

    def sentences(self) -> list[str]:
        """The failed tasks with their errors, and the agents that are not there yet."""
        return [
            *(f"failed: {name}: {error}" for name, error in self.failed.items()),
            *(f"not there yet: {run}" for run in self.absent),
        ]


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
    if not any(task in measured for task in todo) and all(task.is_done(survey) for task in todo):
        there = [task for task in graph if task.name not in waiting]
        listener.start([], there)
        return StudyOutcome(done=[task.name for task in there], absent=absent, waiting=waiting)
    listener.start(todo, finished)
    journal = TaskJournal(survey.store.root, study=note_name(study))
    with journal.coordinating() as (coordinator, heartbeat):
        executor = make_executor(coordinator)
        try:
            outcome = _Schedule(todo, done, executor, listener, journal).run(heartbeat)
            return replace(outcome, absent=absent, waiting=waiting)
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
                self._listener.begun(task)
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
