"""Workers share out the cells of groups and file them in one store.

Workers ask for the next unit when they are free, so a slow core takes fewer; a cell's bytes do not depend on who
played it. Workers write to the store themselves: what is finished survives whatever happens next.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener, wait
from pathlib import Path
from typing import Any, Protocol

from gapfloor import errors
from gapfloor.errors import GapfloorError
from gapfloor.machine import available_cores
from gapfloor.play.cell import CellSpec
from gapfloor.play.group import CellGroup, play_group
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


@dataclass(frozen=True)
class CellWorkers:
    """Plays groups in processes of this machine, or in this one where there is nothing to share out."""

    count: int | None = None
    """Number of processes; None: one per core."""
    progress: Progress = field(default_factory=Silence)

    def play(self, groups: Sequence[CellGroup], *, store: Store) -> None:
        """Play every cell of every group; returns when all are filed."""
        groups = [group for group in groups if group.cells]
        if not groups:
            return
        self.progress.start([cell for group in groups for cell in group.cells])
        workers = min(self.count or available_cores(), sum(len(group.units()) for group in groups))
        if workers > 1 and all(_can_travel(group) for group in groups):
            _Dispatcher(groups, store=store, workers=workers, progress=self.progress).run()
            return
        for group in groups:
            units = iter(group.units())
            for cell in play_group(group, units, store=store, on_episode=self.progress.episode):
                self.progress.cell(cell)


def _can_travel(group: CellGroup) -> bool:
    """Whether another process can load the group's policy: a file or name always, an object if it can be pickled."""
    if group.source is None or group.source.given is None:
        return True
    from gapfloor.play.worker_pool import can_travel

    return group.source.device == "cpu" and can_travel(group.source.given)


@dataclass(frozen=True)
class _Failure:
    kind: str
    message: str


class _Dispatcher:
    """Hands units to workers over local connections, and passes on what they report."""

    def __init__(
        self, groups: Sequence[CellGroup], *, store: Store, workers: int, progress: Progress
    ) -> None:
        self._groups = list(groups)
        self._store = store
        self._workers = workers
        self._progress = progress
        self._taken = [0] * len(self._groups)
        # By file name: a run that is also a reference has two cells with one key.
        self._cells = {cell.file_name: cell for group in self._groups for cell in group.cells}
        self._connections: list[Connection] = []

    def run(self) -> None:
        """Play everything on the shared pool; whatever goes wrong stops the workers."""
        from gapfloor.play.worker_pool import shared_pool

        pool = shared_pool(self._workers)
        key = secrets.token_bytes(16)
        listener = _listen(key)
        try:
            arguments = (listener.address, key, self._groups, self._store.root)
            futures = [pool.submit(_work, number, *arguments) for number in range(self._workers)]
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            self._serve(futures)
        except BaseException:
            # Ctrl-C, a failed worker or a failed policy: no worker continues for a caller that has left.
            pool.shutdown(wait=True, kill_workers=True)
            raise
        finally:
            listener.close()
            for connection in self._connections:
                connection.close()

    def _accept(self, listener: Listener) -> None:
        with contextlib.suppress(OSError, EOFError):
            for _ in range(self._workers):
                self._connections.append(listener.accept())

    def _serve(self, futures: Sequence[Any]) -> None:
        open_connections: list[Connection] = []
        seen = 0
        while not all(future.done() for future in futures) or open_connections:
            open_connections += self._connections[seen:]
            seen = len(self._connections)
            for connection in wait(open_connections, timeout=0.05):
                assert isinstance(connection, Connection)
                try:
                    self._answer(connection, connection.recv())
                except (EOFError, OSError):
                    open_connections.remove(connection)
            for future in futures:
                _check_ended(future)

    def _answer(self, connection: Connection, message: Any) -> None:
        if isinstance(message, int):
            connection.send(self._taken[message])
            self._taken[message] += 1
        elif isinstance(message, _Failure):
            raise _as_error(message)
        elif isinstance(message, str):
            self._progress.cell(self._cells[message])
        else:
            for name, episode_return in message:
                self._progress.episode(self._cells[name], episode_return)


def _listen(key: bytes) -> Listener:
    try:
        return Listener(None, authkey=key)
    except OSError:  # the path of a temporary folder can be too long for a socket
        return Listener(("localhost", 0), authkey=key)


def _check_ended(future: Any) -> None:
    if future.done() and future.exception() is not None:
        raise GapfloorError(
            "A worker process exited unexpectedly; it may have been killed or have run out of memory. Run the same "
            f"command again to resume; --workers 1 needs less memory. ({future.exception()})"
        )


def _as_error(failure: _Failure) -> Exception:
    kind = getattr(errors, failure.kind, None)
    if isinstance(kind, type) and issubclass(kind, GapfloorError):
        return kind(failure.message)
    return RuntimeError(failure.message)


def _work(number: int, address: Any, key: bytes, groups: list[CellGroup], root: Path) -> None:
    """One worker's share of the groups."""
    store = Store(root)
    waiting: list[tuple[str, float]] = []
    with Client(address, authkey=key) as parent:

        def tell() -> None:
            if waiting:
                parent.send(list(waiting))
                waiting.clear()

        def on_episode(cell: CellSpec, episode_return: float) -> None:
            waiting.append((cell.file_name, episode_return))
            if len(waiting) >= 16:
                tell()

        try:
            # Starting at different groups keeps workers apart until the end, where they share what is left.
            for shift in range(len(groups)):
                position = (number * len(groups) // 2 + shift) % len(groups)
                group = groups[position]
                units = _shared_units(group, position, parent)
                for cell in play_group(group, units, store=store, on_episode=on_episode):
                    tell()
                    parent.send(cell.file_name)
            tell()
        except GapfloorError as error:
            parent.send(_Failure(type(error).__name__, str(error)))
        except BaseException:
            parent.send(_Failure("RuntimeError", traceback.format_exc()))


def _shared_units(group: CellGroup, position: int, parent: Connection) -> Iterator[list[CellSpec]]:
    units = group.units()
    while True:
        parent.send(position)
        number = parent.recv()
        if number >= len(units):
            return
        yield units[number]
