"""Progress of a study: one line per task that ends, with the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

from gapfloor.study.executors import Ending
from gapfloor.study.model import Study
from gapfloor.study.tasks import Task
from gapfloor.text_tables import counted


class StudyProgress:
    """Prints one line per task that ends, with the time left."""

    def __init__(self, study: Study, *, is_quiet: bool) -> None:
        self._study, self._is_quiet = study, is_quiet
        self._started = time.monotonic()

    def start(self, todo: Sequence[Task], done: Sequence[Task]) -> None:
        self._cost = {task.name: task.seconds(self._study) for task in todo}
        self._left, self._total = sum(self._cost.values()), sum(self._cost.values())
        self._count, self._n = 0, len(todo)
        self._say(f"{counted(len(done), 'task')} done, {len(todo)} to do.")

    def begun(self, task: Task) -> None:
        pass

    def ended(self, ending: Ending, *, again: bool) -> None:
        if ending.error:
            then = "it will be tried again" if again else "given up; the other tasks continue"
            self._say(f"failed: {ending.task.name}: {ending.error} ({then})")
            if again:
                return
        self._count += 1
        self._left -= self._cost[ending.task.name]
        spent = time.monotonic() - self._started
        passed = self._total - self._left
        left = (
            f", about {duration(spent * self._left / passed)} left" if passed > 0 and self._left > 1 else ""
        )
        if not ending.error:
            self._say(f"[{self._count}/{self._n}, {duration(spent)}{left}] {ending.task.name}")

    def _say(self, text: str) -> None:
        if not self._is_quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
    whole = round(seconds)
    parts: list[Any] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if whole >= size or (name == "s" and not parts):
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])
