"""A pool of one-thread processes that stays alive between calls and never imports the user's `__main__`.

loky starts the processes and cloudpickle sends the work, so a plain script without a guard, a notebook, a REPL and
`python -c` can all use several cores, with functions and closures that were defined there. Starting a worker takes
seconds (the engine reads its assets, torch its libraries), so workers are kept until they have been idle for a while.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker as python_tracker
from typing import Any

import loky
from loky.backend import resource_tracker as loky_tracker
from loky.backend.reduction import dumps as cloud_dumps

from gapfloor.engines.picture_files import looked_at, only_look_at
from gapfloor.leftovers import name_semaphores, remove_leftovers
from gapfloor.machine import SAFE_PATH, safe_path

#: Workers end after this many idle seconds.
IDLE_SECONDS = 120

#: Two one-thread processes are faster than one process with two threads, and threads change the last bits of logits.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def shared_pool(workers: int) -> Any:
    """The pool of this process with `workers` workers, started or resized if need be."""
    # Loading torch looks like a memory leak to loky, which then replaces the worker. Nothing is lost by it.
    warnings.filterwarnings("ignore", message="A worker (stopped|was restarted) while", module="loky")
    return loky.get_reusable_executor(max_workers=workers, timeout=IDLE_SECONDS, **_settings())


def _settings() -> dict[str, Any]:
    """What every pool is made with; the helper processes of loky and of Python are started first, with a safe path."""
    remove_leftovers()
    name_semaphores()
    with safe_path():
        loky_tracker.ensure_running()
        python_tracker.ensure_running()
    return {
        "initializer": begin_worker,
        "initargs": (os.getpid(), looked_at(), SAFE_PATH.keys() <= os.environ.keys()),
        "env": ONE_THREAD | SAFE_PATH,
    }


@contextlib.contextmanager
def started_early(task: Callable[[], Any], workers: int) -> Iterator[bool]:
    """Start workers of the shared pool with a first task while the body of the `with` prepares what they will do.

    If the body fails they are ended at once, so that an error message need not wait for them.
    """
    if workers < 1:
        yield False
        return
    pool = shared_pool(workers)
    for _ in range(workers):
        pool.submit(task)
    try:
        yield True
    except BaseException:
        pool.shutdown(wait=True, kill_workers=True)
        raise


def private_pool(workers: int) -> Any:
    """A pool of its own, for a caller that replaces it when a worker dies."""
    return loky.ProcessPoolExecutor(max_workers=workers, **_settings())


def begin_worker(parent: int, games: frozenset[str] | None, is_path_safe: bool) -> None:
    """Leave Ctrl-C to the parent, and end when the parent ends, even if it was killed.

    `games` are those whose pictures the parent looks at; None: it may look at any. Programs that a user's environment
    starts get the safe path only if the parent had it (`is_path_safe`).
    """
    if not is_path_safe:
        for name in SAFE_PATH:
            os.environ.pop(name, None)
    if games is not None:
        only_look_at(games)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def packed(value: Any) -> bytes | None:
    """A value as a worker can unpickle it, also if it was defined in the user's script.

    None where it cannot be sent, e.g. an open file or a lock.

    >>> packed(lambda observations: observations) is None, packed(threading.Lock()) is None
    (False, True)
    """
    with contextlib.suppress(Exception):  # errors of every kind: that of TorchScript is a RuntimeError
        return bytes(cloud_dumps(value))
    return None
