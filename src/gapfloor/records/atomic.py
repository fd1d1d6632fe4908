"""Files that appear whole or not at all.

A file is written under a temporary name in its own folder, flushed to disk and renamed: a process killed
at any moment leaves either the old file or the new one. Everything gapfloor writes goes through here.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from gapfloor.errors import UsageError, explain_disk_errors
from gapfloor.machine import is_running, this_place

#: Prefix of files under way; then the writer's place and process, a random part and the name of the file.
PARTIAL = ".partial-"

#: A file under way that was last touched this many seconds ago is abandoned, wherever its writer runs.
ABANDONED_SECONDS = 24 * 3600.0


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, then rename it to `path`; a device or pipe is refused, never replaced."""
    path = Path(path)
    check_file(path)
    writer = f"{this_place()}-{os.getpid()}-{secrets.token_hex(4)}"
    # The name is only for people; a long one must not exceed what a file system allows.
    partial = path.parent / f"{PARTIAL}{writer}-{path.name[:120]}"
    with explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            write(partial)
            with open(partial, "rb+") as handle:
                os.fsync(handle.fileno())
            os.replace(partial, path)
            # A rename must last through a power failure, where the file system allows a folder to be flushed.
            with contextlib.suppress(OSError):
                folder = os.open(path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path`, whole or not at all."""
    write_atomically(path, lambda partial: partial.write_bytes(data))


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all."""
    write_bytes_atomically(path, text.encode())


def check_file(path: str | Path | None) -> None:
    """Refuse a folder or a device as the name of a file that will be written, before any work starts."""
    if path is None:
        return
    with contextlib.suppress(OSError, ValueError):  # what cannot be looked at fails when it is written
        if Path(path).is_dir():
            raise UsageError(f"{path} is a folder: give the name of a file.")
        if Path(path).exists() and not Path(path).is_file():
            raise UsageError(f"{path} is a device or a pipe, not a regular file: give the name of a file.")


def check_folder(path: str | Path | None) -> None:
    """Refuse a file, or the root of all files, as the name of a folder that will be written to, before any work."""
    if path is None:
        return
    with contextlib.suppress(OSError, ValueError):
        if Path(path).exists() and not Path(path).is_dir():
            raise UsageError(f"{path} is a file, not a folder: choose another folder.")
    if is_root(path):
        raise UsageError(f"{path} is the root folder of this machine: name a folder of its own.")


def is_root(path: str | Path) -> bool:
    """Whether a path is the root of all files, also in another spelling; nobody means to fill that.

    >>> is_root("/tmp/.."), is_root("/tmp")
    (True, False)
    """
    with contextlib.suppress(OSError):  # the current folder was removed
        whole = os.path.abspath(path)
        return os.path.dirname(whole) == whole
    return False


def remove_leftovers(folder: Path, *, below: bool = True) -> None:
    """Delete temporary files in `folder`, and in those below it, whose writers are gone.

    A writer on this host and in this container is looked up by its process number. Other hosts and containers that
    share the folder cannot be seen from here: their files are left alone until they are a day old.
    """
    for partial in Path(folder).glob(f"**/{PARTIAL}*" if below else f"{PARTIAL}*"):
        with contextlib.suppress(FileNotFoundError):
            if _is_abandoned(partial):
                partial.unlink()


def _is_abandoned(partial: Path) -> bool:
    place, _, rest = partial.name[len(PARTIAL) :].partition("-")
    process = rest.partition("-")[0]
    running = is_running(place, int(process)) if process.isdigit() else None
    if running is None:
        return time.time() - partial.stat().st_mtime > ABANDONED_SECONDS
    return not running
