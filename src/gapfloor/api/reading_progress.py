"""A bar for files that take more than a moment to read."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

#: Smaller files are read before anyone could look at a bar.
_SMALL = 32 << 20


@contextlib.contextmanager
def reading_progress(*, quiet: bool = False) -> Iterator[Callable[[int, int], None] | None]:
    """A function of the bytes that were read and of their total; None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", visible=False)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=total > _SMALL)

        yield told
