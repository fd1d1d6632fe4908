"""What the operating system refuses to read or write, in one sentence that names the place and says what to do."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from gapfloor.errors import StoreError

_FULL = "Free some space and run the same command again."
_PATH = "Check the path."
_ELSEWHERE = "Choose another folder."
_FILE_IN_THE_WAY = "Is a file in the way?"

#: errno -> what is wrong, and what to do.
EXPLANATIONS: Mapping[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", _FULL),
    errno.EDQUOT: ("your disk quota is used up", _FULL),
    errno.EFBIG: ("the file is larger than this file system or your limit (ulimit -f) allows", _ELSEWHERE),
    errno.EIO: ("the disk or network drive reports an input/output error", "Check the drive and try again."),
    errno.ESTALE: (
        "the network drive no longer knows the file (stale file handle)",
        "Run the same command again; if it happens again, mount the drive again.",
    ),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("operation not permitted", _ELSEWHERE),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.ENOTDIR: ("a part of the path is not a folder", _FILE_IN_THE_WAY),
    errno.EEXIST: ("it exists already", _FILE_IN_THE_WAY),
    errno.EISDIR: ("it is a folder", _PATH),
    errno.ENAMETOOLONG: ("the name or path is too long", "Use a shorter one."),
    errno.ENOENT: ("no such file or folder", _PATH),
    errno.ELOOP: ("its symbolic links lead back to themselves", _PATH),
    errno.EMFILE: ("too many files are open", "Use fewer --workers, or raise the limit (ulimit -n)."),
    errno.ENFILE: ("too many files are open on this machine", "Try again later, or use fewer --workers."),
}


def describe_disk_error(error: OSError, path: str | bytes | Path | None) -> str | None:
    """A sentence about `path` for the errors that a user can do something about; None for the others."""
    if error.errno is None or error.errno not in EXPLANATIONS:
        return None
    what, remedy = EXPLANATIONS[error.errno]
    place = shortened(os.fsdecode(path)) if path is not None else "A file or standard output"
    return f"{place} cannot be read or written: {what}. {remedy}"


def shortened(text: str, most: int = 200) -> str:
    """A text of any length for a message: the middle of a long one is left out, control characters are escaped."""
    shown = text if text.isprintable() else text.encode("unicode_escape").decode()
    return shown if len(shown) <= most else f"{shown[: most // 2]}...{shown[-most // 2 :]}"


@contextlib.contextmanager
def explain_disk_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one sentence that names the place."""
    try:
        yield
    except OSError as error:
        sentence = describe_disk_error(error, path)
        if sentence is None:
            raise
        raise StoreError(sentence) from error
    except ValueError as error:
        if "embedded null" not in str(error):
            raise
        raise StoreError(
            f"{shortened(str(path))} is not a path: it contains a NUL character. {_PATH}"
        ) from error
