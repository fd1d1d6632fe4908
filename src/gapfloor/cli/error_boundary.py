"""The one boundary for errors: whatever a command raises becomes a message and an exit code here.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a check that the user asked for failed (`CheckFailedError`, and nothing else) |
| 2 | something the user can put right, or an exception in the user's own code: a sentence |
| 3 | a fault of gapfloor: a request to report it, with the traceback |
| 130, 143 | interrupted by Ctrl-C, or by SIGTERM as batch systems and containers send it |
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import click

from gapfloor.cli.say import say
from gapfloor.errors import GapfloorError, LevelWarning, describe_disk_error
from gapfloor.policies.notes import PolicyWarning
from gapfloor.users_code import is_in_users_code, users_frame

WRONG_USE, OUR_FAULT, INTERRUPTED, TERMINATED = 2, 3, 130, 143

#: Words of Python's own errors about input that no reader of ours should have to expect.
_NOTHING_READABLE = {
    "embedded null": "A path contains a NUL character, which no file name can have: check the paths that you gave.",
    "surrogates not allowed": "A name or text that was given contains half of a character (a surrogate), which cannot "
    "be written as UTF-8: correct it.",
    "integer string conversion": "A file contains a number of more than 4,300 digits: correct or shorten it.",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; everything that cleans up after Ctrl-C cleans up after this too."""


class ReaderGone(Exception):
    """The reader of a pipe has gone; raised in place of BrokenPipeError, for which click would exit with 1."""


_wants_traceback = False


def want_traceback(is_wanted: bool = True) -> None:
    """Show the whole traceback of an error: the option is read while the command runs."""
    global _wants_traceback
    _wants_traceback = is_wanted


def run_guarded(command: Callable[[], Any]) -> int:
    """Run a command of the command line and return its exit code; never raises."""
    want_traceback(False)
    _open_closed_streams()
    try:
        with _terminated_by_sigterm(), _short_warnings():
            status = command()
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else WRONG_USE if stop.code else 0
    except (BrokenPipeError, ReaderGone):
        # The reader of a pipe has gone (`| head`), which is not an error. Keep Python from complaining at exit.
        _discard_output()
        return 0
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        # click turns KeyboardInterrupt into Abort, with the interrupt as its cause.
        _say("gapfloor: stopped. Run the same command again to resume.")
        return TERMINATED if isinstance(error.__cause__ or error, Terminated) else INTERRUPTED
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        _say(shown.getvalue().rstrip())
        return WRONG_USE
    except BaseException as error:
        return _report(error, wants_traceback=_wants_traceback)


def _report(error: BaseException, *, wants_traceback: bool) -> int:
    sentence = sentence_for(error)
    if sentence is None:
        _say("".join(traceback.format_exception(error)).rstrip())
        _say(
            f"gapfloor: This is a bug in gapfloor ({type(error).__name__}). Please report it with the command and the "
            "traceback above."
        )
        return OUR_FAULT
    if wants_traceback:
        _say("".join(traceback.format_exception(error)).rstrip())
    _say(f"gapfloor: {sentence}")
    frame = None if wants_traceback else users_frame(error)
    if frame is not None:
        line = f": {frame.line}" if frame.line else ""
        _say(f"  {frame.filename}, line {frame.lineno}, in {frame.name}{line}")
        _say("  (gapfloor --traceback COMMAND shows the whole traceback)")
    if isinstance(error, OSError):
        _discard_output()
    return error.exit_code if isinstance(error, GapfloorError) else WRONG_USE


def sentence_for(error: BaseException) -> str | None:
    """The message for a user who can put the error right; None where the fault is gapfloor's."""
    if isinstance(error, GapfloorError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory: use fewer --workers, a smaller --batch, or a machine with more memory."
    if is_in_users_code(error):
        return f"Your own code raised {type(error).__name__}: {error}"
    if isinstance(error, OSError):
        return describe_disk_error(error, error.filename)
    if isinstance(error, ModuleNotFoundError) and (error.name or ".").partition(".")[0] != "gapfloor":
        return (
            f"This command needs the package {error.name}, which is not installed: docs/install.md says which extra "
            "installs it."
        )
    if isinstance(error, ValueError):
        return next((words for start, words in _NOTHING_READABLE.items() if start in str(error)), None)
    if isinstance(error, RecursionError):
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if any(f"{os.sep}{name}{os.sep}" in last for name in ("json", "tomllib")):
            return "A file is nested too deeply to be read: check the JSON and TOML files that you gave."
    return None


@contextlib.contextmanager
def noticing_broken_pipes() -> Iterator[None]:
    """Keep BrokenPipeError from click."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None


@contextlib.contextmanager
def _terminated_by_sigterm() -> Iterator[None]:
    """Let SIGTERM interrupt the command as Ctrl-C does; elsewhere than in the main thread nothing can be done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the cleaning up
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _short_warnings() -> Iterator[None]:
    """Print what a user should know about a policy as one line, without the place in our code that says it."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_shortly(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, (PolicyWarning, LevelWarning)):
                _say(f"gapfloor: {message}")
            else:
                show(message, category, *place, **more)

        warnings.showwarning = show_shortly
        yield


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody may be reading
        say(text, err=True)


def _open_closed_streams() -> None:
    """Let a standard stream that was closed (`>&-`) swallow what is written: a file would get its number otherwise."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _discard_output() -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
