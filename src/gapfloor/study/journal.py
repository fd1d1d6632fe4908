"""Who works on a store and what failed, for `study run` and `study status`: notes in `log/`, which are not results.

A note names its process, so a process that was killed does not count as running. A process on another machine cannot be
looked up: it updates its note while it works, and a note that has not been updated for a while is that of a dead one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gapfloor.json_values import from_exact
from gapfloor.process_identity import is_running, start_time, this_place
from gapfloor.records.atomic import write_text_atomically

#: Seconds without a sign of life after which a process of another machine no longer counts as running.
COLD = 120.0

#: Called now and then by whoever works, to show that it is alive.
Heartbeat = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class WorkNote:
    """Who works on what, and since when."""

    study: str
    """The name of the study."""
    work: str
    """The name of the task; empty for the coordinator, the process that hands out tasks."""
    coordinator: str = ""
    """The note of the task's coordinator; empty for the coordinator itself."""
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


@dataclass(frozen=True)
class Failure:
    """A task that failed for good, with its log."""

    task: str
    error: str
    log: Path


class TaskJournal:
    """The notes of one study in one store; another study file on the same store has notes of its own."""

    def __init__(self, root: Path, *, study: str = "", coordinator: str = "") -> None:
        self._tasks = Path(root) / "log" / "tasks"
        self._coordinators = Path(root) / "log" / "runs"
        self._study, self._coordinator = study, coordinator

    def _path(self, task: str, ending: str) -> Path:
        return self._tasks / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', f'{task} {self._study}')}.{ending}"

    @contextlib.contextmanager
    def coordinating(self) -> Iterator[tuple[str, Heartbeat]]:
        """Note that this process hands out tasks; yields the note's name, and what keeps it fresh."""
        note = self._coordinators / f"{this_place()}-{os.getpid()}-{secrets.token_hex(4)}.json"
        with self._noted(note, work="") as heartbeat:
            yield note.name, heartbeat

    @contextlib.contextmanager
    def working(self, task: str) -> Iterator[Heartbeat]:
        """Note that a task runs; yields a function that the task calls now and then to show that it is alive."""
        self._path(task, "failed").unlink(missing_ok=True)
        note = self._path(task, f"{this_place()}-{os.getpid()}.running")
        with self._noted(note, work=task) as heartbeat:
            yield heartbeat

    @contextlib.contextmanager
    def _noted(self, note: Path, *, work: str) -> Iterator[Heartbeat]:
        process = os.getpid()
        who = WorkNote(
            study=self._study, work=work, coordinator=self._coordinator, host=socket.gethostname(),
            place=this_place(), process=process, started=start_time(process), since=time.time(),
        )  # fmt: skip
        write_text_atomically(note, json.dumps(dataclasses.asdict(who)) + "\n")
        last = time.monotonic()

        def heartbeat() -> None:
            nonlocal last
            if time.monotonic() - last > COLD / 10:
                last = time.monotonic()
                with contextlib.suppress(OSError):
                    os.utime(note)

        try:
            yield heartbeat
        finally:
            note.unlink(missing_ok=True)

    def fail(self, task: str, error: str, details: str) -> Path:
        """Write down what is known about a failure; returns the path of the log."""
        log = self._path(task, "log")
        write_text_atomically(log, details.rstrip() + "\n")
        failed = {"task": task, "study": self._study, "error": error}
        write_text_atomically(self._path(task, "failed"), json.dumps(failed) + "\n")
        return log

    def failures(self) -> dict[str, Failure]:
        """Tasks of this study whose last attempt failed."""
        found = {}
        for path in sorted(self._tasks.glob("*.failed")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                note = json.loads(path.read_text())
                if note["study"] == self._study:
                    found[note["task"]] = Failure(note["task"], note["error"], path.with_suffix(".log"))
        return found

    def running(self) -> set[str]:
        """Tasks of this study that are being worked on, by a process that somebody still waits for."""
        coordinators = {path.name for path, _ in _living(self._coordinators, "*.json")}
        return {
            note.work
            for _, note in _living(self._tasks, "*.running")
            if note.study == self._study and note.coordinator in ("", *coordinators)
        }

    def coordinators(self) -> list[WorkNote]:
        """Every process that hands out tasks of any study in this store."""
        return [note for _, note in _living(self._coordinators, "*.json")]


def _living(folder: Path, pattern: str) -> Iterator[tuple[Path, WorkNote]]:
    """The notes of processes that work now, as far as can be known."""
    for path in sorted(folder.glob(pattern)):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            note = from_exact(WorkNote, json.loads(path.read_text()))
            is_alive = is_running(note.place, note.process, started=note.started)
            if is_alive is None:
                is_alive = time.time() - path.stat().st_mtime < COLD
            if is_alive:
                yield path, note
