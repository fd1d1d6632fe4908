"""Where tasks run: in processes of this machine, or on Ray.

Both executors run the same function, `carry_out`, and the bytes that a task writes do not depend on where it ran.
Several machines need Ray. A cluster that asks for no token runs the code of everyone who can reach it, so it is refused
(https://docs.ray.io/en/latest/ray-security/token-auth.html; Ray before 2.52 has no authentication).
"""

from __future__ import annotations

import concurrent.futures
import os
import secrets
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from gapfloor.engines.worker_pool import private_pool
from gapfloor.errors import GapfloorError, MissingExtraError, UsageError
from gapfloor.leftovers import temporary_folder
from gapfloor.machine import safe_path
from gapfloor.records.stored_cell import content_key
from gapfloor.settings import to_table
from gapfloor.study.journal import TaskJournal
from gapfloor.study.model import Study
from gapfloor.study.tasks import Task, Workplace
from gapfloor.users_code import full_traceback, in_users_words

#: Connects as a stranger would: success is what must not happen.
_CONNECT = "import sys, ray; ray.init(address=sys.argv[1], logging_level='ERROR', log_to_driver=False)"
_MOST_SECONDS = 120


def note_name(study: Study) -> str:
    """The study in notes: two files with one name are two studies if they ask for different things."""
    return f"{study.name} {content_key(to_table(study))[:8]}"


def carry_out(task: Task, workplace: Workplace) -> tuple[str, str]:
    """Run one task in this process; the error in a sentence and in full, both empty when it is done."""
    if os.path.isdir(workplace.folder):
        os.chdir(workplace.folder)
    try:
        with TaskJournal(workplace.root, study=note_name(workplace.study)).working(task.name):
            task.perform(workplace)
        return "", ""
    except GapfloorError as error:
        return str(error), str(error)
    except Exception as error:
        return in_users_words(error), full_traceback(error)


#: A task under way: its error in a sentence and in full.
Running = concurrent.futures.Future[tuple[str, str]]


class LocalExecutor:
    """A pool of one-thread processes on this machine; a process that dies is replaced."""

    losses: tuple[type[BaseException], ...] = (BrokenProcessPool, concurrent.futures.CancelledError)
    """What a future raises whose worker was lost."""

    def __init__(self, workplace: Workplace, *, workers: int) -> None:
        self.capacity, self._workplace = workers, workplace
        self._pool = private_pool(workers)

    def begin(self, task: Task) -> Running:
        """Run `carry_out` somewhere."""
        try:
            future: Running = self._pool.submit(carry_out, task, self._workplace)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False, kill_workers=True)
            self._pool = private_pool(self.capacity)
            future = self._pool.submit(carry_out, task, self._workplace)
        return future

    def close(self) -> None:
        """Stop whatever still runs."""
        self._pool.shutdown(wait=True, kill_workers=True)


class RayExecutor:
    """Tasks on a Ray cluster: one CPU each; the runner begins a lost task again, elsewhere."""

    def __init__(
        self,
        workplace: Workplace,
        *,
        address: str,
        capacity: int | None = None,
        must_authenticate: bool = True,
    ) -> None:
        if address == "local" and "RAY_AUTH_MODE" not in os.environ:
            # A cluster that this process starts has a token of its own.
            os.environ["RAY_AUTH_MODE"] = "token"
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
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
        self._workplace = ray.put(workplace)
        self.losses: tuple[type[BaseException], ...] = (ray.exceptions.RayError,)

    def begin(self, task: Task) -> Running:
        reference = self._run.options(name=task.name).remote(task, self._workplace)
        future: Running = reference.future()
        return future

    def close(self) -> None:
        self._ray.shutdown()


Executor = LocalExecutor | RayExecutor


def refuse_open_cluster(address: str) -> None:
    """Refuse a cluster that lets a process without a token in.

    The question is put to the cluster itself: what is set here does not say what its nodes check.
    """
    stranger = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")}
    stranger |= {"RAY_AUTH_MODE": "disabled", "RAY_NUM_REDIS_GET_RETRIES": "2"}
    try:
        asked = subprocess.run(
            [sys.executable, "-P", "-c", _CONNECT, address], env=stranger, capture_output=True, check=False,
            timeout=_MOST_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return  # nobody was let in; whether the cluster answers at all is seen when the study connects
    if asked.returncode == 0:
        raise UsageError(
            f"The Ray cluster at {address} asks for no token, so everyone who can reach it can run code on it: start "
            "its nodes with RAY_AUTH_MODE=token (docs/studies.md), or, if nobody else can reach it, add "
            "--without-authentication."
        )
