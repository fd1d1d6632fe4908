"""Workers: processes that share out the cells of groups and file them in one store.

Each worker is a process with one thread, because two one-thread processes are faster than one process with
two threads. Workers take units from a shared counter, so a slow core takes fewer; a cell's bytes do not depend
on who played it. Workers write to the store themselves: what is finished survives whatever happens next.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import queue
import signal
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gapfloor import errors
from gapfloor.errors import GapfloorError
from gapfloor.play.cell import CellSpec
from gapfloor.play.group import Group, play_group
from gapfloor.records.store import Store


class Progress(Protocol):
    """Hears what happens while cells are played; see `gapfloor.cli.progress` for the one that draws."""

    def start(self, cells: Sequence[CellSpec]) -> None:
        """The cells that will be played."""
        ...

    def episode(self, cell: CellSpec, episode_return: float) -> None:
        """One counted episode has ended."""
        ...

    def cell(self, cell: CellSpec) -> None:
        """A cell has been filed."""
        ...


class Silence:
    """A progress that says nothing."""

    def start(self, cells: Sequence[CellSpec]) -> None: ...

    def episode(self, cell: CellSpec, episode_return: float) -> None: ...

    def cell(self, cell: CellSpec) -> None: ...


def play_groups(groups: Sequence[Group], *, store: Store, workers: int, progress: Progress) -> None:
    """Play every cell of every group; returns when all are filed."""
    groups = [group for group in groups if group.cells]
    if not groups:
        return
    progress.start([cell for group in groups for cell in group.cells])
    n_units = sum(len(group.units()) for group in groups)
    stays_here = any(group.source is not None and group.source.stays_here for group in groups)
    if workers <= 1 or n_units == 1 or stays_here:
        for group in groups:
            for cell in play_group(group, iter(group.units()), store=store, on_episode=progress.episode):
                progress.cell(cell)
        return
    _play_in_processes(groups, store=store, workers=min(workers, n_units), progress=progress)


@dataclass(frozen=True)
class _Failure:
    kind: str
    message: str


def _play_in_processes(groups: Sequence[Group], *, store: Store, workers: int, progress: Progress) -> None:
    # Spawned, not forked: neither torch nor the engine survives a fork.
    context = multiprocessing.get_context("spawn")
    taken = context.Array("i", len(groups))
    inbox: Any = context.Queue()
    arguments = (os.getpid(), list(groups), store.root, taken, inbox)
    processes = [
        context.Process(target=_work, args=(number, *arguments), daemon=True) for number in range(workers)
    ]
    with _one_thread_variables():
        for process in processes:
            process.start()
    try:
        _listen(groups, processes, inbox, progress)
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
            process.join()


def _listen(groups: Sequence[Group], processes: Sequence[Any], inbox: Any, progress: Progress) -> None:
    cells = [cell for group in groups for cell in group.cells]
    number_of = {cell.key: number for number, cell in enumerate(cells)}
    done = 0
    while done < len(processes):
        try:
            message = inbox.get(timeout=1.0)
        except queue.Empty:
            _check_alive(processes)
            continue
        if message is None:
            done += 1
        elif isinstance(message, _Failure):
            raise _as_error(message)
        elif isinstance(message, str):
            progress.cell(cells[number_of[message]])
        else:
            for key, episode_return in message:
                progress.episode(cells[number_of[key]], episode_return)


def _check_alive(processes: Sequence[Any]) -> None:
    for process in processes:
        if process.exitcode not in (None, 0):
            raise GapfloorError(
                f"A worker ended without a word (exit code {process.exitcode}): was it killed, or out of memory? "
                "The same command again goes on from here; --workers 1 needs less memory."
            )


def _as_error(failure: _Failure) -> Exception:
    kind = getattr(errors, failure.kind, None)
    if isinstance(kind, type) and issubclass(kind, GapfloorError):
        return kind(failure.message)
    return RuntimeError(failure.message)


def _work(number: int, parent: int, groups: list[Group], root: Path, taken: Any, inbox: Any) -> None:
    """The life of one worker."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    store = Store(root)
    waiting: list[tuple[str, float]] = []

    def tell() -> None:
        if waiting:
            inbox.put(list(waiting))
            waiting.clear()

    def on_episode(cell: CellSpec, episode_return: float) -> None:
        waiting.append((cell.key, episode_return))
        if len(waiting) >= 16:
            tell()

    try:
        # Starting at different groups keeps workers apart until the end, where they share what is left.
        for shift in range(len(groups)):
            position = (number * len(groups) // 2 + shift) % len(groups)
            group = groups[position]
            for cell in play_group(
                group, _shared_units(group, position, taken), store=store, on_episode=on_episode
            ):
                tell()
                inbox.put(cell.key)
        inbox.put(None)
    except GapfloorError as error:
        inbox.put(_Failure(type(error).__name__, str(error)))
    except BaseException:
        inbox.put(_Failure("RuntimeError", traceback.format_exc()))


def _shared_units(group: Group, position: int, taken: Any) -> Iterator[list[CellSpec]]:
    units = group.units()
    while True:
        with taken.get_lock():
            number = taken[position]
            taken[position] += 1
        if number >= len(units):
            return
        yield units[number]


def die_with(parent: int) -> None:
    """Ask Linux to end this process when its parent is killed, so that `kill -9` leaves nobody behind."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed while this process was still starting
        os._exit(1)


class _one_thread_variables:
    """Children start with one numeric thread each; this process keeps its own setting."""

    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

    def __enter__(self) -> None:
        self._before = {name: os.environ.get(name) for name in self.names}
        os.environ.update(dict.fromkeys(self.names, "1"))

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
