"""What a killed process of ours leaves in memory and among temporary files, and its removal by the next start.

Blank pictures and the semaphores of workers are files in /dev/shm (or the folder for temporary files), where temporary
stores are too. A process that is killed cannot remove them, so their names say whose they are, and the next process
that makes some removes those of processes that no longer run. Processes of other containers cannot be seen from here:
theirs are left alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
from pathlib import Path

from gapfloor.machine import is_running, this_place

MEMORY = Path("/dev/shm")

_NAME = re.compile(r"(?:sem\.)?gapfloor-[a-z]+-([0-9a-f]{12})-(\d+)-.*")


def own_name(kind: str) -> str:
    """The start of the name of a file or folder, which says which process made it; `kind` is a word."""
    return f"gapfloor-{kind}-{this_place()}-{os.getpid()}-"


@functools.cache
def remove_leftovers() -> None:
    """Remove what processes of this place that no longer run have left; once per process."""
    for folder in {MEMORY, Path(tempfile.gettempdir())}:
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                found = _NAME.fullmatch(path.name)
                if found is None or is_running(found[1], int(found[2])) is not False:
                    continue
                with contextlib.suppress(OSError):
                    if path.is_symlink() or not path.is_dir():
                        path.unlink()
                    else:
                        shutil.rmtree(path, ignore_errors=True)


def temporary_folder(kind: str, *, within: str | None = None) -> tempfile.TemporaryDirectory[str]:
    """A folder that goes when the `with` ends, or with the process; the next start removes that of a killed one."""
    remove_leftovers()
    return tempfile.TemporaryDirectory(prefix=own_name(kind), dir=within)


def name_semaphores() -> None:
    """Have loky name its semaphores so that they can be recognised; where they are not files nothing changes."""
    from loky.backend.synchronize import SemLock

    if MEMORY.is_dir():
        SemLock._make_name = staticmethod(lambda: f"/{own_name('lock')}{next(SemLock._rand)}")
