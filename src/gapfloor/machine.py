"""This machine and this process: cores, threads, safe child processes, who wrote a file, and silence for a library."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import multiprocessing
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


@functools.cache
def this_place() -> str:
    """A short name for this boot of this host and this container's process numbers.

    A process number means something only there: elsewhere the same number belongs to another process, or to none.
    """
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    # Two containers on one host start at different moments.
    parts += filter(None, [start_time(1)])
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def start_time(process: int) -> str:
    """When a process of this place began, in ticks of the kernel: a number that is used again begins later."""
    try:
        # The fields after the name, which may contain anything.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def is_running(place: str, process: int, *, started: str = "") -> bool | None:
    """Whether a process runs; None for a process of another place, which cannot be seen from here.

    `started` is what `start_time` said about it; a process that began at another time is another one.
    """
    if place != this_place():
        return None
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return started in ("", start_time(process))


#: Standard output and standard error belong to the process: two threads that replace one at once would leave the wrong
#: one behind, and a stream that is silent for all would swallow what the other threads write.
_REPLACING = threading.RLock()


class _SilentFor:
    """A stream of everyone but one thread."""

    def __init__(self, stream: Any, thread: int) -> None:
        self._stream, self._thread = stream, thread

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def without_chatter(stream: str = "stdout") -> Iterator[None]:
    """Drop what this thread prints to a stream of `sys`, e.g. what BabyAI says while it makes a level."""
    with _REPLACING:
        kept = getattr(sys, stream)
        setattr(sys, stream, _SilentFor(kept, threading.get_ident()))
        try:
            yield
        finally:
            setattr(sys, stream, kept)
