"""Keeps what a library prints away from the user, also where several threads run.

Standard output and standard error belong to the process: two threads that replace one at once would leave the wrong one
behind, and a stream that is silent for all would swallow what the other threads write.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

_REPLACING = threading.RLock()


class _SilentFor:
    """A stream of everyone but one thread."""

    def __init__(self, stream: Any, thread: int) -> None:
        self._stream, self._thread = stream, thread

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def without_chatter(stream: str = "stdout") -> Iterator[None]:
    """Drop what this thread prints to a stream of `sys`, e.g. what BabyAI says while it makes a level."""
    with _REPLACING:
        kept = getattr(sys, stream)
        setattr(sys, stream, _SilentFor(kept, threading.get_ident()))
        try:
            yield
        finally:
            setattr(sys, stream, kept)
