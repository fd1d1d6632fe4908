"""Files that a user names as input: refused in one sentence where they cannot be read, before anything hangs.

A named pipe would wait for a writer for ever, and a path can contain anything when it comes from a file.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gapfloor.disk_errors import describe_disk_error, shortened
from gapfloor.errors import GapfloorError, UsageError


def check_input_file(
    path: str | Path, *, error: type[GapfloorError] = UsageError, most_bytes: int | None = None
) -> Path:
    """The path of an existing regular file, at most `most_bytes` long; otherwise an `error` that says why not."""
    shown = shortened(os.fspath(path))
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise error(f"There is no file {shown}. Check the path.") from None
    except OSError as failure:
        raise error(describe_disk_error(failure, path) or f"{shown} cannot be read ({failure}).") from None
    except ValueError:
        raise error(f"{shown} is not a path: it contains a NUL character. Check the path.") from None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, socket or device"
        raise error(f"{shown} is {kind}: give a regular file.")
    if most_bytes is not None and found.st_size > most_bytes:
        raise error(f"{shown} has {found.st_size:,} bytes: at most {most_bytes:,} are read here.")
    return Path(path)


def read_input_text(
    path: str | Path, *, error: type[GapfloorError] = UsageError, most_bytes: int | None = None
) -> str:
    """The text of a file that the user names."""
    try:
        return check_input_file(path, error=error, most_bytes=most_bytes).read_text(encoding="utf-8")
    except UnicodeDecodeError as failure:
        raise error(f"{shortened(os.fspath(path))} is not text in UTF-8 ({failure}).") from None
    except OSError as failure:
        words = (
            describe_disk_error(failure, path) or f"{shortened(os.fspath(path))} cannot be read ({failure})."
        )
        raise error(words) from None
