"""What the user is told once about a policy: choices that were made for it, and outputs that look wrong."""

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
