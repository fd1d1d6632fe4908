"""Where tasks run: in processes of this machine, or on Ray.

An executor takes tasks and reports how each of them ended. Both executors run the same function, `carry_out`, and
the bytes that a task writes do not depend on where it ran. Several machines need Ray.
"""

from __future__ import annotations

import concurrent.futures
import os
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Protocol

from gapfloor.engines.worker_pool import private_pool
from gapfloor.errors import GapfloorError, MissingExtraError, UsageError
from gapfloor.leftovers import temporary_folder
from gapfloor.records.manifest import content_key
from gapfloor.records.store import Store
from gapfloor.safe_path import safe_path
from gapfloor.settings import to_table
from gapfloor.study.journal import TaskJournal
from gapfloor.study.model import Study
from gapfloor.study.ray_authentication import refuse_open_cluster, require_token_here
from gapfloor.study.tasks import Task, Workplace
from gapfloor.users_code import full_traceback, in_users_words

#: What is known about a task whose worker is gone.
LOST = "its worker process exited unexpectedly (killed, out of memory, or its machine was lost)"


@dataclass(frozen=True)
class Ending:
    """How a task ended: `error` is empty when it is done."""

    task: Task
    error: str = ""
    details: str = ""
    is_lost: bool = False
    """The worker died: nothing is known about the task itself."""


@dataclass(frozen=True)
class StudyAssignment:
    """What a worker needs to know, wherever it is."""

    study: Study
    store: str
    """The folder, as every machine sees it."""
    backend: str | None = None
    """The library of all networks, chosen once for the whole study, whatever else a machine has installed."""
    coordinator: str = ""
    """The note of the process that hands out the tasks."""
    folder: str = field(default_factory=os.getcwd)
    """Where the command was typed: the user's own modules are found there."""


def note_name(study: Study) -> str:
    """The study in notes: two files with one name are two studies if they ask for different things."""
    return f"{study.name} {content_key(to_table(study))[:8]}"


def carry_out(task: Task, assignment: StudyAssignment) -> tuple[str, str]:
    """Run one task in this process; the error in a sentence and in full, both empty when it is done."""
    if os.path.isdir(assignment.folder):
        os.chdir(assignment.folder)
    store, study = Store(assignment.store), assignment.study
    journal = TaskJournal(store.root, study=note_name(study), coordinator=assignment.coordinator)
    try:
        with journal.working(task.name) as heartbeat:
            task.perform(Workplace(study, store, assignment.backend, heartbeat))
        return "", ""
    except GapfloorError as error:
        return str(error), str(error)
    except Exception as error:
        return in_users_words(error), full_traceback(error)


class Executor(Protocol):
    """Runs tasks and says how they ended."""

    capacity: int

    def submit(self, task: Task) -> None:
        """Begin a task."""
        ...

    def wait(self, seconds: float) -> list[Ending]:
        """Tasks that ended, after at most `seconds`."""
        ...

    def close(self) -> None:
        """Stop whatever still runs."""
        ...


class LocalExecutor:
    """A pool of one-thread processes on this machine; a process that dies is replaced."""

    def __init__(self, assignment: StudyAssignment, *, workers: int) -> None:
        self.capacity = workers
        self._assignment = assignment
        self._running: dict[concurrent.futures.Future[tuple[str, str]], Task] = {}
        self._pool = private_pool(workers)

    def submit(self, task: Task) -> None:
        try:
            future = self._pool.submit(carry_out, task, self._assignment)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False, kill_workers=True)
            self._pool = private_pool(self.capacity)
            future = self._pool.submit(carry_out, task, self._assignment)
        self._running[future] = task

    def wait(self, seconds: float) -> list[Ending]:
        done, _ = concurrent.futures.wait(
            self._running, timeout=seconds, return_when=concurrent.futures.FIRST_COMPLETED
        )
        endings = []
        for future in done:
            task = self._running.pop(future)
            try:
                endings.append(Ending(task, *future.result()))
            except (BrokenProcessPool, concurrent.futures.CancelledError) as error:
                endings.append(Ending(task, LOST, str(error), is_lost=True))
        return endings

    def close(self) -> None:
        self._pool.shutdown(wait=True, kill_workers=True)


class RayExecutor:
    """Tasks on a Ray cluster: one CPU each; the runner begins a lost task again, elsewhere."""

    def __init__(
        self,
        assignment: StudyAssignment,
        *,
        address: str,
        capacity: int | None = None,
        must_authenticate: bool = True,
    ) -> None:
        if address == "local":
            require_token_here()
        try:
            import ray
        except ImportError:
            raise MissingExtraError('Ray is not installed: pip install "gapfloor[ray]".') from None
        self._ray = ray
        if must_authenticate and address != "local":
            refuse_open_cluster(address)
        try:
            # Ray would put the current folder on the path of its workers; an empty working folder takes its place.
            with safe_path(), temporary_folder("ray") as nothing:
                ray.init(
                    address=address,  # without one, Ray joins whatever cluster it finds on this machine
                    runtime_env={"working_dir": nothing},
                    log_to_driver=False,
                    logging_level="ERROR",
                )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(f"No Ray cluster answers at {address}: {error}") from None
        self.capacity = capacity or max(1, int(ray.cluster_resources().get("CPU", 1)))
        # Ray itself retries nothing: the runner counts the attempts of a task that keeps crashing its worker.
        remote: Any = ray.remote(num_cpus=1, max_retries=0)
        self._run = remote(carry_out)
        self._assignment = ray.put(assignment)
        self._running: dict[Any, Task] = {}

    def submit(self, task: Task) -> None:
        self._running[self._run.options(name=task.name).remote(task, self._assignment)] = task

    def wait(self, seconds: float) -> list[Ending]:
        if not self._running:
            return []
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        endings = []
        for reference in done:
            task = self._running.pop(reference)
            try:
                endings.append(Ending(task, *self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:
                endings.append(Ending(task, LOST, str(error), is_lost=True))
        return endings

    def close(self) -> None:
        self._ray.shutdown()
