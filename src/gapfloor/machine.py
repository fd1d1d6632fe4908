"""What this machine offers: the cores that may be used, and torch held to one thread."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
