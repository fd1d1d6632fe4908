"""Workers share out the cells of groups, and the calling process files them in one store.

The calling process plays too: it has read the engine's assets already, and a new process needs seconds for that.
Whoever is free asks for the next piece, which is a few episodes, so a slow core takes fewer and all end together. A
cell's bytes do not depend on who played it. A cell is written as soon as its last episode has been played: what is
finished survives whatever happens next.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener, wait
from typing import Any, Protocol

from gapfloor import errors
from gapfloor.engines.protocol import EngineSpec
from gapfloor.errors import GapfloorError, UsersCodeError
from gapfloor.machine import available_cores, may_start_processes
from gapfloor.play.cell import CellSpec
from gapfloor.play.group import CellGroup, Piece, PlayedPiece, file_cell, play_group
from gapfloor.play.player import CellPlay
from gapfloor.play.policy_trial import action_space_of
from gapfloor.records.store import Store
from gapfloor.users_code import full_traceback, is_in_users_code, users_frame


class Progress(Protocol):
    """Hears what happens while cells are played; see `gapfloor.api.progress` for the one that draws."""

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


#: What an episode takes at least, in seconds: with a network, and without.
_EPISODE_SECONDS = (0.1, 0.005)

#: What a new process needs before it can play, in seconds: a second worker for less work than this only costs.
_START_SECONDS = 2.0


@dataclass(frozen=True)
class CellWorkers:
    """Plays groups in this process and, where there is enough to share out, in others next to it."""

    count: int | None = None
    """Number of processes; None: one per core, fewer for little work."""
    progress: Progress = field(default_factory=Silence)

    def play(self, groups: Sequence[CellGroup], *, store: Store) -> None:
        """Play every cell of every group; returns when all are filed."""
        groups = [group for group in groups if group.cells]
        if not groups:
            return
        self.progress.start([cell for group in groups for cell in group.cells])
        workers = min(self.count or worthwhile_workers(groups), sum(len(group.pieces()) for group in groups))
        with _Filing(groups, store, self.progress) as filing:
            if workers > 1 and may_start_processes() and all(_can_travel(group) for group in groups):
                _Dispatcher(groups, filing=filing, workers=workers).run()
                return
            for group in groups:
                whole: Iterator[Piece] = ([(cell, None) for cell in unit] for unit in group.units())
                for piece in play_group(group, whole, on_episode=filing.episode):
                    filing.add(piece)


def worthwhile_workers(groups: Sequence[CellGroup]) -> int:
    """As many processes as there are cores, but none that would start for less work than its start takes."""
    episodes = [0, 0]
    for group in groups:
        episodes[group.source is None] += sum(len(cell.schedule()) for cell in group.cells)
    return _worthwhile(*episodes)


def _worthwhile(with_network: int, without: int = 0) -> int:
    seconds = with_network * _EPISODE_SECONDS[0] + without * _EPISODE_SECONDS[1]
    return max(1, min(available_cores(), 1 + int(seconds / _START_SECONDS)))


def started_workers(
    engine: EngineSpec, *, episodes: int, count: int | None
) -> contextlib.AbstractContextManager[None]:
    """Workers that read the engine's assets while the body of the `with` loads policies for so many episodes."""
    workers = _worthwhile(episodes) if count is None else min(count, episodes)
    if workers < 2 or not may_start_processes():
        return contextlib.nullcontext()
    from gapfloor.play.worker_pool import started_early

    return started_early(functools.partial(action_space_of, engine), workers - 1)


def _can_travel(group: CellGroup) -> bool:
    """Whether another process can load the group's policy: a file or name always, an object if it can be pickled."""
    if group.source is None or group.source.given is None:
        return True
    from gapfloor.play.worker_pool import can_travel

    return group.source.device == "cpu" and can_travel(group.source.given)


class _Filing:
    """Puts the pieces of cells together and files each cell when it is whole; several threads may report.

    Cells are written by a thread of their own, because play need not wait for the disk.
    """

    def __init__(self, groups: Sequence[CellGroup], store: Store, progress: Progress) -> None:
        # By file name: a run that is also a reference has two cells with one key.
        self._cells = {cell.file_name: cell for group in groups for cell in group.cells}
        self._open: dict[str, CellPlay] = {}
        self._store, self._progress = store, progress
        self._lock = threading.Lock()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="filing")
        self._written: list[Future[None]] = []

    def __enter__(self) -> _Filing:
        return self

    def __exit__(self, *error: object) -> None:
        """Wait until whole cells are written, also after an error; one of writing is raised if there is no other."""
        self._writer.shutdown(wait=True)
        if error[0] is None:
            self._check_written()

    @property
    def has_everything(self) -> bool:
        """Whether every episode of every cell has been played."""
        with self._lock:
            return len(self._written) == len(self._cells)

    def _check_written(self) -> None:
        for each in self._written:
            if each.done():
                each.result()

    def episode(self, cell: CellSpec, episode_return: float) -> None:
        """Report an episode of this process."""
        self.episodes([(cell.file_name, episode_return)])

    def episodes(self, played: Sequence[tuple[str, float]]) -> None:
        """Report episodes, each by its cell's file name."""
        with self._lock:
            for name, episode_return in played:
                self._progress.episode(self._cells[name], episode_return)

    def add(self, piece: PlayedPiece) -> None:
        """Take a piece of a cell; has the cell written if it was the last."""
        self._check_written()
        with self._lock:
            cell = self._cells[piece.cell]
            play = self._open.setdefault(piece.cell, CellPlay(cell, None, cell.is_deterministic))
            for position, outcome in piece.outcomes.items():
                play.put(position, outcome)
            if play.is_done:
                del self._open[piece.cell]
                self._written.append(self._writer.submit(self._write, play, piece))

    def _write(self, play: CellPlay, last: PlayedPiece) -> None:
        file_cell(self._store, play, last)
        with self._lock:
            self._progress.cell(play.spec)


@dataclass(frozen=True)
class _Failure:
    """An error of a worker; exceptions of a user's own class cannot always be sent, so it travels as text."""

    kind: str
    message: str
    details: str
    """The traceback."""
    users_frame: traceback.FrameSummary | None

    @classmethod
    def of(cls, error: BaseException) -> _Failure:
        kind, message = type(error).__name__, str(error)
        if not isinstance(error, (GapfloorError, MemoryError)) and is_in_users_code(error):
            kind, message = UsersCodeError.__name__, f"Your own code raised {kind}: {message}"
        return cls(kind, message, full_traceback(error), users_frame(error))

    def as_error(self) -> Exception:
        """The error for this process: with the user's own line, and the worker's traceback as its cause."""
        kind = getattr(errors, self.kind, None)
        error: Exception
        if isinstance(kind, type) and issubclass(kind, GapfloorError):
            error = kind(self.message)
            error.users_frame = self.users_frame
        else:
            error = MemoryError() if self.kind == MemoryError.__name__ else RuntimeError(self.kind)
        error.__cause__ = WorkerTraceback(self.details)
        return error


class WorkerTraceback(Exception):
    """The traceback of another process, as its text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Dispatcher:
    """Plays in this process, hands pieces to workers over local connections, and files what they report."""

    def __init__(self, groups: Sequence[CellGroup], *, filing: _Filing, workers: int) -> None:
        self._groups = list(groups)
        self._filing = filing
        self._others = workers - 1
        self._taken = [0] * len(self._groups)
        self._lock = threading.Lock()
        self._connections: list[Connection] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Play everything; whatever goes wrong here or in a worker stops all of them."""
        from gapfloor.play.worker_pool import shared_pool

        pool = shared_pool(self._others)
        key = secrets.token_bytes(16)
        listener = _listen(key)
        try:
            futures = [
                pool.submit(_work, number, listener.address, key, self._groups)
                for number in range(1, self._others + 1)
            ]
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            server = threading.Thread(target=self._serve, args=(futures,), daemon=True)
            server.start()
            self._play_here()
            # A worker that is still starting when nothing is left for it is not waited for.
            while server.is_alive() and not self._filing.has_everything:
                server.join(0.1)  # a join without an end would keep Ctrl-C waiting
            self._raise_error()
        except BaseException:
            # Ctrl-C, a failed worker or a failed policy: no worker continues for a caller that has left.
            pool.shutdown(wait=True, kill_workers=True)
            raise
        finally:
            # The error's traceback holds the engine's buffers and leads back here. A circle of them would be left to
            # the garbage collector, which can crash on such buffers when the interpreter ends.
            self._error = None
            listener.close()
            for connection in self._connections:
                connection.close()

    def _play_here(self) -> None:
        def on_episode(cell: CellSpec, episode_return: float) -> None:
            self._raise_error()
            self._filing.episode(cell, episode_return)

        def pieces_of(position: int) -> Iterator[Piece]:
            pieces = self._groups[position].pieces()
            while (number := self._take(position)) < len(pieces):
                self._raise_error()
                yield pieces[number]

        for position in _order(0, len(self._groups)):
            for piece in play_group(self._groups[position], pieces_of(position), on_episode=on_episode):
                self._filing.add(piece)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _take(self, position: int) -> int:
        with self._lock:
            self._taken[position] += 1
            return self._taken[position] - 1

    def _accept(self, listener: Listener) -> None:
        with contextlib.suppress(OSError, EOFError):
            for _ in range(self._others):
                self._connections.append(listener.accept())

    def _serve(self, futures: Sequence[Any]) -> None:
        try:
            self._answer_until_done(futures)
        except BaseException as error:
            self._error = error

    def _answer_until_done(self, futures: Sequence[Any]) -> None:
        open_connections: list[Connection] = []
        seen = 0
        while not all(future.done() for future in futures) or open_connections:
            open_connections += self._connections[seen:]
            seen = len(self._connections)
            if not open_connections:
                time.sleep(0.01)
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
            connection.send(self._take(message))
        elif isinstance(message, _Failure):
            raise message.as_error()
        elif isinstance(message, PlayedPiece):
            self._filing.add(message)
        else:
            self._filing.episodes(message)


def _listen(key: bytes) -> Listener:
    try:
        return Listener(None, authkey=key)
    except OSError:  # the path of a temporary folder can be too long for a socket
        return Listener(("localhost", 0), authkey=key)


def _check_ended(future: Any) -> None:
    if future.done() and future.exception() is not None:
        raise GapfloorError(
            "A worker process exited unexpectedly; it may have been killed or have run out of memory. Run the same "
            "command again to resume; --workers 1 needs less memory."
        ) from future.exception()


def _order(number: int, n_groups: int) -> Iterator[int]:
    """The groups in the order of one player: different beginnings keep players apart until they share what is left."""
    return ((number * n_groups // 2 + shift) % n_groups for shift in range(n_groups))


def _work(number: int, address: Any, key: bytes, groups: list[CellGroup]) -> None:
    """One worker's share of the groups."""
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
            for position in _order(number, len(groups)):
                pieces = _shared_pieces(groups[position], position, parent)
                for piece in play_group(groups[position], pieces, on_episode=on_episode):
                    tell()
                    parent.send(piece)
            tell()
        except BaseException as error:
            parent.send(_Failure.of(error))


def _shared_pieces(group: CellGroup, position: int, parent: Connection) -> Iterator[Piece]:
    pieces = group.pieces()
    while True:
        parent.send(position)
        number = parent.recv()
        if number >= len(pieces):
            return
        yield pieces[number]
