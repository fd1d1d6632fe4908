"""Files that a user names as input: refused in one sentence where they cannot be read, before anything hangs.

A named pipe would wait for a writer for ever, and a path can contain anything when it comes from a file.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gapfloor.disk_errors import describe_disk_error, shortened
from gapfloor.errors import GapfloorError, UsageError


def check_input_file(path: str | Path, *, error: type[GapfloorError] = UsageError) -> Path:
    """The path of an existing regular file; otherwise an `error` that says why not."""
    with _explained(path, error):
        _refuse_other_files(os.stat(path), path, error, None)
    return Path(path)


def read_input_bytes(
    path: str | Path, *, error: type[GapfloorError] = UsageError, most_bytes: int | None = None
) -> bytes:
    """The bytes of a regular file that the user names, at most `most_bytes` of them."""
    with _explained(path, error):
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            _refuse_other_files(os.fstat(descriptor), path, error, most_bytes)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read() if most_bytes is None else file.read(most_bytes + 1)
        finally:
            os.close(descriptor)


def read_input_text(
    path: str | Path, *, error: type[GapfloorError] = UsageError, most_bytes: int | None = None
) -> str:
    """The text of a file that the user names."""
    try:
        return read_input_bytes(path, error=error, most_bytes=most_bytes).decode().replace("\r\n", "\n")
    except UnicodeDecodeError as failure:
        raise error(f"{shortened(os.fspath(path))} is not text in UTF-8 ({failure}).") from None


@contextlib.contextmanager
def _explained(path: str | Path, error: type[GapfloorError]) -> Iterator[None]:
    """Turn what the operating system says about a path into an `error` of one sentence."""
    shown = shortened(os.fspath(path))
    try:
        yield
    except FileNotFoundError:
        raise error(f"There is no file {shown}. Check the path.") from None
    except OSError as failure:
        raise error(describe_disk_error(failure, path) or f"{shown} cannot be read ({failure}).") from None
    except ValueError:
        raise error(f"{shown} is not a path: it contains a NUL character. Check the path.") from None


def _refuse_other_files(
    found: os.stat_result, path: str | Path, error: type[GapfloorError], most_bytes: int | None
) -> None:
    """Refuse what is not a regular file, and one that is too long."""
    shown = shortened(os.fspath(path))
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, socket or device"
        raise error(f"{shown} is {kind}: give a regular file.")
    if most_bytes is not None and found.st_size > most_bytes:
        raise error(f"{shown} has {found.st_size:,} bytes: at most {most_bytes:,} are read here.")
