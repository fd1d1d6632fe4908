"""Policy files as bytes that are read once, so that what is checked is also what is loaded.

A file that is checked under its path and then opened again by another reader can change in between, and two readers can
understand one file differently. Loaders therefore read a file here, check these bytes, load from these
bytes and hash these bytes.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from gapfloor.errors import PolicyError

#: The largest file that is read. Policies of RL are far smaller; a sparse file of terabytes is not a policy.
MOST_FILE_BYTES = 4 << 30

#: What the contents of a file may always take in memory, however small the file is.
ALWAYS_ALLOWED_BYTES = 256 << 20

#: How much larger than its file the contents may be. Tensors hardly compress, so ten times is already generous.
MOST_GROWTH = 10


def read_policy_file(path: Path) -> bytes:
    """The bytes of a regular file; anything else (a folder, a pipe, a device) is refused without waiting for it."""
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise _cannot_open(path, error) from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PolicyError(
                f"The policy file {path} is {_kind_of_file(status.st_mode)}: give the path of a file that exists."
            )
        if status.st_size > MOST_FILE_BYTES:
            raise PolicyError(
                f"The policy file {path} has {size_in_words(status.st_size)}, and at most "
                f"{size_in_words(MOST_FILE_BYTES)} are read: give the file that holds the policy alone."
            )
        try:
            return file.read(MOST_FILE_BYTES + 1)
        except OSError as error:
            raise _cannot_open(path, error) from None


def existing_file(path: Path) -> Path:
    """The path itself, refused when it does not lead to a regular file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise _cannot_open(path, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise PolicyError(
            f"The policy file {path} is {_kind_of_file(status.st_mode)}: give the path of a file that exists."
        )
    return path


def most_unpacked(file_bytes: int) -> int:
    """The memory that the contents of a file of this size may take before it is refused."""
    return max(ALWAYS_ALLOWED_BYTES, MOST_GROWTH * file_bytes)


def size_in_words(n_bytes: int) -> str:
    """A size for a sentence.

    >>> size_in_words(6_400_000_000), size_in_words(812)
    ('6.4 GB', '812 bytes')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} bytes"


def _kind_of_file(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    return "not a regular file"


def _cannot_open(path: Path, error: OSError | ValueError) -> PolicyError:
    number = getattr(error, "errno", None)
    if number in (errno.ENOENT, errno.ENOTDIR):
        return PolicyError(f"The policy file {path} is missing: give the path of a file that exists.")
    if number == errno.ENAMETOOLONG:
        return PolicyError(
            f"The path of the policy file has {len(os.fspath(path))} characters, which is too long for this file "
            f"system (it starts with {os.fspath(path)[:60]!r}): give a shorter one."
        )
    if isinstance(error, ValueError):  # a NUL character
        return PolicyError(
            f"The path {os.fspath(path)!r} cannot be a path ({error}): give the path of a file that exists."
        )
    reason = error.strerror or type(error).__name__
    return PolicyError(
        f"The policy file {path} cannot be read ({reason}): give the path of a file that can be read."
    )
