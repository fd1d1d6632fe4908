"""Who works on a store and what failed, for `study run` and `study status`: notes in `log/`, which are not results.

A note names its process, so a process that was killed does not count as running. A process on another machine cannot be
looked up: it updates its note while it lives, and a note that has not been updated for a while is that of a dead one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gapfloor.json_values import DAMAGED, from_exact
from gapfloor.machine import is_running, start_time, this_place
from gapfloor.records.atomic import write_text_atomically

#: Seconds without a sign of life after which a process of another machine no longer counts as running.
COLD = 120.0


@dataclass(frozen=True, kw_only=True)
class WorkNote:
    """Who works on what, and since when."""

    study: str
    """The name of the study."""
    task: str
    """The name of the task."""
    host: str
    place: str
    process: int
    started: str
    since: float

    @property
    def words(self) -> str:
        """Who this is, for a message."""
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.process} on {self.host} since {since} (study {self.study})"


class TaskJournal:
    """The notes of one study in one store; another study file on the same store has notes of its own."""

    def __init__(self, root: Path, *, study: str = "") -> None:
        self._folder = Path(root) / "log" / "tasks"
        self._study = study

    def _path(self, task: str, ending: str) -> Path:
        return self._folder / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', f'{task} {self._study}')}.{ending}"

    @contextlib.contextmanager
    def working(self, task: str) -> Iterator[None]:
        """Note that a task runs, for as long as it does."""
        self._path(task, "failed").unlink(missing_ok=True)
        process = os.getpid()
        note = self._path(task, f"{this_place()}-{process}.running")
        who = WorkNote(
            study=self._study, task=task, host=socket.gethostname(), place=this_place(), process=process,
            started=start_time(process), since=time.time(),
        )  # fmt: skip
        write_text_atomically(note, json.dumps(dataclasses.asdict(who)) + "\n")
        has_ended = threading.Event()
        threading.Thread(target=_keep_fresh, args=(note, has_ended), daemon=True).start()
        try:
            yield
        finally:
            has_ended.set()
            note.unlink(missing_ok=True)

    def fail(self, task: str, error: str, details: str) -> None:
        """Write down what is known about a failure."""
        write_text_atomically(self._path(task, "log"), details.rstrip() + "\n")
        failed = {"task": task, "study": self._study, "error": error}
        write_text_atomically(self._path(task, "failed"), json.dumps(failed) + "\n")

    def failures(self) -> dict[str, tuple[str, Path]]:
        """Tasks of this study whose last attempt failed -> the error, and its log."""
        found = {}
        for path in sorted(self._folder.glob("*.failed")):
            with contextlib.suppress(*DAMAGED):
                note = json.loads(path.read_text())
                if note["study"] == self._study:
                    found[note["task"]] = str(note["error"]), path.with_suffix(".log")
        return found

    def running(self) -> set[str]:
        """Tasks of this study that are being worked on."""
        return {note.task for note in self.workers() if note.study == self._study}

    def workers(self) -> list[WorkNote]:
        """The notes of processes that work on any study in this store, as far as can be known."""
        found = []
        for path in sorted(self._folder.glob("*.running")):
            with contextlib.suppress(*DAMAGED):
                note = from_exact(WorkNote, json.loads(path.read_text()))
                is_alive = is_running(note.place, note.process, started=note.started)
                if is_alive is None:
                    is_alive = time.time() - path.stat().st_mtime < COLD
                if is_alive:
                    found.append(note)
        return found


def _keep_fresh(note: Path, has_ended: threading.Event) -> None:
    """Show now and then that the process of a note is alive."""
    while not has_ended.wait(COLD / 10):
        with contextlib.suppress(OSError):
            os.utime(note)
