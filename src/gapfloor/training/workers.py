"""Threads that each run one piece of the network at a time, and the allocator settings they need.

One operation on several threads is slower than several operations on one thread each, because the convolutions are
small and the threads would wait for each other. So torch runs with one thread per operation, pieces of a batch go to
Python threads (torch releases the interpreter's lock), and results are combined in the order of the pieces: the
number of threads does not change a single bit.

Row of `make bench`: "train starpilot, float32".
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import torch

from gapfloor.machine import one_torch_thread

# glibc's <malloc.h>
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8


@contextlib.contextmanager
def start_workers(threads: int) -> Iterator[Executor]:
    """Threads that map a function over pieces, with torch set to one thread per operation in all of them."""
    keep_freed_memory()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        with one_torch_thread():
            yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def keep_freed_memory() -> None:
    """Tell glibc not to give freed memory back to the system, where glibc is what we run on.

    By default every activation of more than a few megabytes is a fresh mapping, zeroed page by page by the
    kernel on each use: a tenth of an update. Replacing the allocator instead would abort inside ProcGen.
    """
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL("libc.so.6").mallopt
        mallopt(_M_MMAP_THRESHOLD, 2**30)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_M_TOP_PAD, 2**26)
        # The arenas of threads are limited to 64 MB per heap, too small for the activations of one piece.
        mallopt(_M_ARENA_MAX, 1)
