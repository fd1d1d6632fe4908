"""Running a study: ready tasks go to an executor until nothing is left that can be done.

A failed task is tried again, then reported with its log; tasks that depend on it wait, and the others continue.
"""

from __future__ import annotations

import concurrent.futures
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gapfloor.api.progress import duration
from gapfloor.escape import printable_text
from gapfloor.study.executors import Executor, Running
from gapfloor.study.journal import TaskJournal
from gapfloor.study.tasks import Task
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReadableResult

#: How often a task that failed of itself is begun, and one whose worker was lost.
ATTEMPTS, ATTEMPTS_IF_LOST = 2, 5

#: What is known about a task whose worker is gone.
LOST = "its worker process exited unexpectedly (killed, out of memory, or its machine was lost)"


class StudyProgress:
    """Prints one line per task that ends, with the time left."""

    def __init__(self, seconds: Mapping[str, float], *, is_quiet: bool, workers: int = 1) -> None:
        """`seconds` are those that each task to do is expected to take."""
        self._seconds, self._is_quiet, self._workers = seconds, is_quiet, workers
        self._started, self._count = time.monotonic(), 0
        self._left = self._total = sum(seconds.values())

    def ended(self, task: Task, error: str = "", *, again: bool = False) -> None:
        """Say how an attempt at a task ended."""
        if error:
            then = "it will be tried again" if again else "given up; the other tasks continue"
            self.tell(f"failed: {task.name}: {error} ({then})")
        if again:
            return
        self._count += 1
        self._left -= self._seconds[task.name]
        spent = time.monotonic() - self._started
        left = f", about {duration(self.seconds_left(spent))} left" if self._left > 1 else ""
        if not error:
            self.tell(f"[{self._count}/{len(self._seconds)}, {duration(spent)}{left}] {task.name}")

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
            sys.stderr.write(f"{printable_text(text)}\n")
            sys.stderr.flush()


@dataclass(repr=False)
class StudyOutcome(ReadableResult):
    """How a study ended."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Task and error."""
    blocked: list[str] = field(default_factory=list)
    """Tasks that need a failed one."""
    study: str = ""
    """The study's name."""
    store: str = ""
    """The folder of its store."""

    def sentences(self) -> list[str]:
        """How many tasks are done, and where the page is."""
        if self.failed:
            return [f"{self.study}: {counted(len(self.done), 'task')} done."]
        page = Path(self.store) / "report" / "index.html"
        return [f"{self.study}: all {len(self.done)} tasks are done. The page is {page}."]

    @property
    def failure(self) -> str:  # type: ignore[override]
        """What failed and what to do; empty where nothing did."""
        if not self.failed:
            return ""
        first, error = next(iter(self.failed.items()))
        return (
            f"{counted(len(self.failed), 'task')} failed and {len(self.blocked)} depend on them. First: {first}: "
            f"{error} Logs are in {Path(self.store) / 'log' / 'tasks'}; run the same command to try again. For a look "
            f"at what is there: gapfloor report {self.store}"
        )


def do_tasks(
    todo: Sequence[Task],
    outcome: StudyOutcome,
    *,
    executor: Executor,
    progress: StudyProgress,
    journal: TaskJournal,
) -> None:
    """Begin each task when what it needs is done, until nothing is left that can be done; fills in the outcome."""
    waiting, running = list(todo), dict[Running, Task]()
    attempts: Counter[str] = Counter()
    while True:
        ready = [task for task in waiting if set(outcome.done).issuperset(task.needs)]
        for task in ready[: executor.capacity - len(running)]:
            waiting.remove(task)
            attempts[task.name] += 1
            running[executor.begin(task)] = task
        if not running:
            break
        for future in concurrent.futures.wait(running, timeout=5.0, return_when="FIRST_COMPLETED").done:
            task, most = running.pop(future), ATTEMPTS
            try:
                error, details = future.result()
            except executor.losses as loss:
                error, details, most = LOST, str(loss), ATTEMPTS_IF_LOST
            again = bool(error) and attempts[task.name] < most
            if again:
                waiting.insert(0, task)
            elif error:
                journal.fail(task.name, error, details)
                outcome.failed[task.name] = error
            else:
                outcome.done.append(task.name)
            progress.ended(task, error, again=again)
    outcome.blocked = [task.name for task in waiting]
