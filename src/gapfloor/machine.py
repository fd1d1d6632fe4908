"""What this machine offers: the cores that may be used, torch and BLAS held to one thread, and safe child processes."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator

from gapfloor.errors import UsageError


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_workers(workers: int | None) -> None:
    """Refuse a number of workers below 1; None stands for one per core."""
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}: use at least 1.")


def check_memory() -> None:
    """Refuse a limit of this process's memory in which numpy and scipy cannot start: OpenBLAS waits there forever."""
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _LEAST_MEMORY:
        raise UsageError(
            f"The memory of this process is limited to {limit / 1e9:.1f} GB (ulimit -v): gapfloor needs at least "
            f"{_LEAST_MEMORY / 1e9:.1f} GB, and a network needs more."
        )


#: Importing pyarrow, numpy and scipy worked with 0.6 GB and did not end with 0.4 GB.
_LEAST_MEMORY = 600_000_000


_HOME = os.getpid()


def may_start_processes() -> bool:
    """Whether this process may start others: daemonic ones, e.g. those of `multiprocessing.Pool`, may not.

    Neither does a process that was forked from one that had imported gapfloor: its parent's workers are not its own.
    """
    return not multiprocessing.current_process().daemon and os.getpid() == _HOME


_BLAS_LOCK, _BLAS_LIMIT = threading.Lock(), contextlib.ExitStack()
_blas_users = 0


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold numpy's matrix products to one thread: their last bits depend on it, and threads that wait are busy.

    The limit belongs to the process, so it begins with the first thread that enters and ends with the last that leaves:
    two evaluations in threads of a host program would otherwise restore each other's number.
    """
    from threadpoolctl import threadpool_limits

    global _blas_users
    with _BLAS_LOCK:
        if _blas_users == 0:
            _BLAS_LIMIT.enter_context(threadpool_limits(1, user_api="blas"))
        _blas_users += 1
    try:
        yield
    finally:
        with _BLAS_LOCK:
            _blas_users -= 1
            if _blas_users == 0:
                _BLAS_LIMIT.close()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Hold torch and numpy to one thread, as workers are: a policy may use either."""
    with one_blas_thread(), one_torch_thread():
        yield


@contextlib.contextmanager
def one_torch_thread() -> Iterator[None]:
    """Hold torch, where it is imported, to one thread: thread counts change the last bits of logits."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


#: `python -m` and `python -c` put the current folder first on the path, so a file there that is named like one of
#: Python's own modules would run in every worker. A worker gets the path of the process that started it instead.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Children that start within the `with` do not have the current folder on their path."""
    before = {name: os.environ.get(name) for name in SAFE_PATH}
    os.environ.update(SAFE_PATH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
