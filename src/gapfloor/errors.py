"""The errors a user can meet, one class per reason.

Every message says what was wrong, the value seen, and what to do next, in that order. The command line
prints the message without a traceback; bugs in gapfloor keep theirs (see `gapfloor.cli.error_boundary`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
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
