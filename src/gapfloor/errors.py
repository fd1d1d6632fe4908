"""The errors a user can meet, one class per reason, and what the operating system refuses, in one sentence.

Every message says what was wrong, the value seen, and what to do next, in that order. The command line
prints the message without a traceback; bugs in gapfloor keep theirs (see `gapfloor.cli.error_boundary`).
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from traceback import FrameSummary


class GapfloorError(Exception):
    """Something the user can correct; the command line exits with `exit_code`."""

    exit_code = 2
    users_frame: FrameSummary | None = None
    """Where the user's own code failed in another process, from which no traceback can be brought."""


class UsageError(GapfloorError):
    """An argument, a file or a setting is wrong."""


class UnknownEnvironmentError(UsageError):
    """A name under which no environment can be found, unlike one that is found but cannot be used."""


class MissingExtraError(GapfloorError):
    """An optional dependency is needed and not installed."""


class StoreError(GapfloorError):
    """A store cannot be read or written, or holds something made under another specification."""


class PolicyError(GapfloorError):
    """A user's policy does not import, or returns something that cannot be used."""


class UsersCodeError(GapfloorError):
    """The user's own code raised an exception in another process."""


class CheckFailedError(GapfloorError):
    """A check that the user asked for did not pass."""

    exit_code = 1


#: Names listed in an error before the rest is counted; all of ProcGen's games fit.
MOST_NAMES = 20


def nearest_names(name: str, known: Iterable[str]) -> str:
    """The known names closest to `name`, as the end of a sentence.

    >>> nearest_names("starpilt", ["starpilot", "heist"])
    'did you mean starpilot?'
    >>> nearest_names("zzz", ["starpilot", "heist"])
    'known: heist, starpilot.'
    """
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"known: {', '.join(names[:MOST_NAMES])}{more}."


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is not in a closed set, with the nearest names."""
    return UsageError(f"Unknown {kind} '{name}': {nearest_names(name, known)}")


def refuse_repeats(kind: str, named: Sequence[object]) -> None:
    """Refuse a list in which something is named twice."""
    for each in named:
        if list(named).count(each) > 1:
            raise UsageError(f"The {kind} '{each}' is named twice: name each {kind} once.")


class LevelWarning(UserWarning):
    """Shown as a warning where every seed of an environment is the same level."""


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
