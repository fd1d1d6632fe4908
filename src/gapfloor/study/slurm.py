"""Tasks of a study as SLURM jobs, through submitit: for clusters without Ray.

Tasks are idempotent and write whole files into the store, which must be a folder that every node sees. A job that was
lost or preempted is submitted again by the runner.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.safe_path import safe_path
from gapfloor.study.executors import Ending, StudyAssignment, carry_out
from gapfloor.study.tasks import Task

#: Jobs that may be queued or running at once unless the user says otherwise.
MOST_JOBS = 100


class SlurmExecutor:
    """Submits each task as one job with one CPU; see `gapfloor.study.executors.Executor`.

    Args:
        assignment: what a worker needs to know.
        settings: parameters of submitit, e.g. `partition=cpu,timeout_min=240`; `local` runs the jobs on this machine.
        capacity: jobs that may be queued or running at once.
    """

    def __init__(self, assignment: StudyAssignment, *, settings: str, capacity: int | None = None) -> None:
        try:
            import submitit
        except ImportError:
            raise MissingExtraError('submitit is not installed: pip install "gapfloor[slurm]".') from None
        self.capacity = capacity or MOST_JOBS
        self._assignment = assignment
        self._jobs: dict[Any, Task] = {}
        is_local = settings == "local"
        parameters = {} if is_local else parse_settings(settings)
        folder = Path(assignment.store) / "log" / "slurm"
        try:
            self._submitit = submitit.AutoExecutor(folder=folder, cluster="local" if is_local else "slurm")
            self._submitit.update_parameters(cpus_per_task=1, **parameters)
        except (RuntimeError, NameError, TypeError, AssertionError) as error:
            raise UsageError(f"SLURM cannot be used with --slurm {settings}: {error}") from None

    def submit(self, task: Task) -> None:
        # One thread per job, as in the workers of this machine: threads change the last bits of logits.
        os.environ["OMP_NUM_THREADS"] = "1"
        with safe_path():
            job = self._submitit.submit(carry_out, task, self._assignment)
        self._jobs[job] = task

    def wait(self, seconds: float) -> list[Ending]:
        until = time.monotonic() + seconds
        while not (done := [job for job in self._jobs if job.done()]) and time.monotonic() < until:
            time.sleep(0.2)
        return [self._ending(job, self._jobs.pop(job)) for job in done]

    def close(self) -> None:
        for job in self._jobs:
            job.cancel()

    def _ending(self, job: Any, task: Task) -> Ending:
        try:
            return Ending(task, *job.result())
        except Exception as error:  # the job left no result: killed, preempted, or out of time or memory
            return Ending(task, f"its job {job.job_id} was lost", str(error), is_lost=True)


def parse_settings(text: str) -> dict[str, Any]:
    """Parameters for submitit from `name=value,name=value`; SLURM's own names get their prefix.

    >>> parse_settings("partition=cpu,timeout_min=240")
    {'slurm_partition': 'cpu', 'timeout_min': 240}
    """
    found: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(
                f"'{pair}' is not a setting of --slurm: write NAME=VALUE, e.g. partition=cpu,timeout_min=240."
            )
        is_shared = name in ("timeout_min", "mem_gb", "name", "nodes", "stderr_to_stdout")
        found[name if is_shared or name.startswith("slurm_") else f"slurm_{name}"] = (
            int(value) if value.isdecimal() else value
        )
    return found
