"""What is running and what failed, for `study status`: notes in `log/`, which are not results.

A running task updates its note while it works; a note that has not been updated belongs to a process that died.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gapfloor.records.atomic import write_text_atomically
from gapfloor.study.graph import Task

#: Seconds without a sign of life after which a task no longer counts as running.
COLD = 120.0


@dataclass(frozen=True)
class Failure:
    """A task that failed for good, with its log."""

    task: str
    error: str
    log: Path


class TaskJournal:
    """The notes of one store."""

    def __init__(self, root: Path) -> None:
        self._folder = Path(root) / "log" / "tasks"

    def _path(self, task: str, ending: str) -> Path:
        return self._folder / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', task)}.{ending}"

    @contextlib.contextmanager
    def working(self, task: Task) -> Iterator[Callable[[], None]]:
        """Note that a task runs; yields a function that the task calls now and then to show that it is alive."""
        note = self._path(task.name, "running")
        who = {"task": task.name, "host": socket.gethostname(), "process": os.getpid(), "since": time.time()}
        write_text_atomically(note, json.dumps(who) + "\n")
        self._path(task.name, "failed").unlink(missing_ok=True)
        last = time.monotonic()

        def beat() -> None:
            nonlocal last
            if time.monotonic() - last > COLD / 10:
                last = time.monotonic()
                with contextlib.suppress(OSError):
                    os.utime(note)

        try:
            yield beat
        finally:
            note.unlink(missing_ok=True)

    def fail(self, task: Task, error: str, details: str) -> Path:
        """Write down what is known about a failure; returns the path of the log."""
        log = self._path(task.name, "log")
        write_text_atomically(log, details.rstrip() + "\n")
        failed = self._path(task.name, "failed")
        write_text_atomically(failed, json.dumps({"task": task.name, "error": error}) + "\n")
        return log

    def failures(self) -> dict[str, Failure]:
        """Tasks whose last attempt failed."""
        found = {}
        for path in sorted(self._folder.glob("*.failed")):
            with contextlib.suppress(OSError, ValueError):
                note = json.loads(path.read_text())
                found[note["task"]] = Failure(note["task"], note["error"], path.with_suffix(".log"))
        return found

    def running(self) -> set[str]:
        """Tasks whose note was updated recently."""
        found = set()
        for path in self._folder.glob("*.running"):
            with contextlib.suppress(OSError, ValueError):
                if time.time() - path.stat().st_mtime < COLD:
                    found.add(json.loads(path.read_text())["task"])
        return found
