"""Files that appear whole or not at all.

A file is written under a temporary name in its own folder, flushed to disk and renamed: a process killed
at any moment leaves either the old file or the new one. Everything gapfloor writes goes through here.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from gapfloor.errors import StoreError

#: Prefix of files under way; `remove_leftovers` deletes those of dead processes.
PARTIAL = ".partial-"


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary file, then rename it to `path`."""
    path = Path(path)
    partial = path.parent / f"{PARTIAL}{os.getpid()}-{path.name}"
    with explain_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(partial)
            with open(partial, "rb+") as handle:
                os.fsync(handle.fileno())
            os.replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path`, whole or not at all."""

    def write(partial: Path) -> None:
        partial.write_bytes(data)

    write_atomically(path, write)


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, whole or not at all."""
    write_bytes_atomically(path, text.encode())


@contextlib.contextmanager
def explain_disk_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one sentence that names the place."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreError(
                f"The disk is full: {path} was not written. Free some space and run again."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreError(
                f"{path} cannot be written ({error.strerror}). Choose another folder."
            ) from error
        if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
            raise StoreError(f"{path} cannot be written ({error.strerror}). Is a file in the way?") from error
        raise


def remove_leftovers(folder: Path) -> None:
    """Delete temporary files that processes which no longer run have left below `folder`."""
    for partial in Path(folder).rglob(f"{PARTIAL}*"):
        owner = partial.name[len(PARTIAL) :].split("-", 1)[0]
        if owner.isdigit() and not _is_alive(int(owner)):
            partial.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
