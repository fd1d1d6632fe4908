"""Which process wrote something, told apart across hosts and containers that share a folder.

A process number means something only within one boot of one host and one container: elsewhere the same number
belongs to another process, or to none.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import socket
from pathlib import Path


@functools.cache
def this_place() -> str:
    """A short name for this boot of this host and this container's process numbers."""
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
