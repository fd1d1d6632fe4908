"""What the user is told about a policy: choices that were made for it, outputs that look wrong, others' errors."""

from __future__ import annotations

import multiprocessing
import warnings

#: Texts that were already shown in this process.
_SHOWN: set[str] = set()


class PolicyWarning(UserWarning):
    """Something about a policy that the user should know and that does not stop the measurement."""


def note_once(text: str) -> None:
    """Show a text once per process; worker processes stay silent, because the main process loads every policy first."""
    if text in _SHOWN or multiprocessing.parent_process() is not None:
        return
    _SHOWN.add(text)
    warnings.warn(text, PolicyWarning, stacklevel=2)


def first_line(error: BaseException, *, most: int = 300) -> str:
    """The first line of an error's text, or its class where there is none."""
    lines = str(error).strip().splitlines()
    return lines[0][:most] if lines else type(error).__name__
