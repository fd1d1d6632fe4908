"""Files that a user names as input: refused in one sentence where they cannot be read, before anything hangs.

A named pipe would wait for a writer for ever, and a path can contain anything when it comes from a file. Policy files
are read once: one that is checked under its path and then opened again by another reader can change in between, and two
readers can understand one file differently. Loaders check these bytes, load from them and hash them.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gapfloor.errors import GapfloorError, PolicyError, UsageError, describe_disk_error, shortened

#: The largest policy file that is read. Policies of RL are far smaller; a sparse file of terabytes is not a policy.
MOST_FILE_BYTES = 4 << 30

#: What the contents of a file may always take in memory, however small the file is.
ALWAYS_ALLOWED_BYTES = 256 << 20

#: How much larger than its file the contents may be. Tensors hardly compress, so ten times is already generous.
MOST_GROWTH = 10


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


def read_policy_file(path: Path) -> bytes:
    """The bytes of a policy's file."""
    return read_input_bytes(path, error=PolicyError, most_bytes=MOST_FILE_BYTES)


def check_growth(n_bytes: int, file_bytes: int, *, what: str) -> None:
    """Refuse contents that would take far more memory than the file has bytes, before room is made for them."""
    if n_bytes > max(ALWAYS_ALLOWED_BYTES, MOST_GROWTH * file_bytes):
        raise PolicyError(
            f"{what} would take {size_in_words(n_bytes)} of memory when unpacked, although the file has only "
            f"{size_in_words(file_bytes)}: it is damaged or was made to fill the memory, so it is not read."
        )


def size_in_words(n_bytes: int) -> str:
    """A size for a sentence.

    >>> size_in_words(6_400_000_000), size_in_words(812)
    ('6.4 GB', '812 bytes')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes"


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
