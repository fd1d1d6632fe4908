"""Workers share out the cells of groups, and the calling process files them in one store.

The calling process plays too: it has read the engine's assets already, and a new process needs seconds for that.
Whoever is free takes the next pieces, which are a few episodes each, so a slow core takes fewer and all end together. A
cell's bytes do not depend on who played it. A cell is written as soon as its last episode has been played: what is
finished survives whatever happens next.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gapfloor.engines.engine import PROCGEN, EngineSpec
from gapfloor.errors import GapfloorError, UsersCodeError
from gapfloor.machine import available_cores, may_start_processes
from gapfloor.play.candidate import action_space_of
from gapfloor.play.cell import CellSpec
from gapfloor.play.group import CellGroup, Piece, PlayedPiece, finished_record, play_group, with_policy
from gapfloor.play.player import CellPlay
from gapfloor.records.store import Store
from gapfloor.users_code import is_in_users_code, users_frame


class Progress:
    """Hears what happens while cells are played and says nothing; `gapfloor.api.progress` has one that draws."""

    def start(self, cells: Sequence[CellSpec]) -> None:
        """The cells that will be played."""

    def episode(self, cell: CellSpec, episode_return: float) -> None:
        """One counted episode has ended."""

    def cell(self, cell: CellSpec) -> None:
        """A cell has been filed."""


#: What an episode takes at least, in seconds: with a network, and without.
_EPISODE_SECONDS = (0.1, 0.005)

#: Pieces that a worker gets at a time, at most: what it has played is filed when the last of them is done.
MOST_PIECES = 8

#: What a new process needs before it can play, in seconds: a second worker for less work than this only costs.
_START_SECONDS = 2.0

#: Play from which the time of the rest is estimated, in seconds, where an episode may take anything.
_TRIAL_SECONDS = 0.5


@dataclass(frozen=True)
class CellWorkers:
    """Plays groups in this process and, where there is enough to share out, in others next to it."""

    count: int | None = None
    """Number of processes; None: one per core, fewer for little work."""
    progress: Progress = field(default_factory=Progress)
    are_started: bool = False
    """Whether `started_workers` has started them already, so that they cost nothing more."""

    def play(self, groups: Sequence[CellGroup], *, store: Store) -> None:
        """Play every cell of every group; returns when all are filed."""
        groups = [group for group in groups if group.cells]
        if not groups:
            return
        self.progress.start([cell for group in groups for cell in group.cells])
        workers = self.count or worthwhile_workers(groups)
        # On a busy disk it took three seconds to flush a cell, and play need not wait for that.
        with ThreadPoolExecutor(1, thread_name_prefix="filing") as writer:
            filing = _Filing(store, self.progress, writer)
            if workers > 1 and may_start_processes():
                is_decided = self.count is not None or self.are_started
                # `_EPISODE_SECONDS` are ProcGen's: an episode of a stranger's environment may take anything.
                starts = is_decided or all(group.engine.engine == PROCGEN.name for group in groups)
                _Team(groups, filing=filing, workers=workers, starts_at_once=starts).play()
            else:
                for group in groups:
                    for piece in play_group(group, iter(group.whole_pieces()), on_episode=filing.episode):
                        filing.add(piece)
        filing.check_written()


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
) -> contextlib.AbstractContextManager[bool]:
    """Workers that make the engine while the body of the `with` loads policies for so many episodes; says whether.

    Benchmark rows: greedy-starpilot and sb3-cartpole-sampled, which take a few seconds; the first policy of a process
    takes two of them to load.
    """
    workers = _worthwhile(episodes) if count is None else min(count, episodes)
    if workers < 2 or not may_start_processes():
        return contextlib.nullcontext(False)
    from gapfloor.engines.worker_pool import started_early

    return started_early(functools.partial(action_space_of, engine), workers - 1)


class _Filing:
    """Puts the pieces of cells together and has each cell written when it is whole; several threads may report."""

    def __init__(self, store: Store, progress: Progress, writer: ThreadPoolExecutor) -> None:
        # By file name: a run that is also a reference has two cells with one key.
        self._open: dict[str, CellPlay] = {}
        self._store, self._progress, self._writer = store, progress, writer
        self._lock = threading.Lock()
        self._written: list[Future[None]] = []

    def check_written(self) -> None:
        """Raise what went wrong with a cell that was written."""
        for each in self._written:
            if each.done():
                each.result()

    def episode(self, cell: CellSpec, episode_return: float) -> None:
        """Report an episode."""
        with self._lock:
            self._progress.episode(cell, episode_return)

    def add(self, piece: PlayedPiece) -> None:
        """Take a piece of a cell; has the cell written if it was the last."""
        self.check_written()
        with self._lock:
            name = piece.cell.file_name
            play = self._open.setdefault(name, CellPlay(piece.cell))
            play.outcomes.update(piece.outcomes)
            if play.is_done:
                del self._open[name]
                self._written.append(self._writer.submit(self._write, play, piece))

    def _write(self, play: CellPlay, last: PlayedPiece) -> None:
        schedule, outcomes = play.schedule, play.finished()
        self._store.write_cell(
            file_name=play.spec.file_name,
            content=play.spec.content(),
            labels=play.spec.labels,
            columns={
                "slot": schedule.slot,
                "index": schedule.index,
                "level_seed": schedule.level_seed,
                "episode_return": np.array([outcome.episode_return for outcome in outcomes]),
                "length": np.array([outcome.length for outcome in outcomes], dtype=np.int32),
            },
            record=finished_record(play, last),
        )
        with self._lock:
            self._progress.cell(play.spec)


class _Team:
    """This process and workers next to it, which play pieces of groups until none is left.

    A worker gets several pieces at a time, and the less is left the fewer: the episodes of one future go through one
    queue, whose end leaves slots idle. A worker gets nothing before it has started, so it is never waited for. Where
    the cost of an episode is not known, workers start once play here has shown that there is enough for them.
    """

    def __init__(
        self, groups: Sequence[CellGroup], *, filing: _Filing, workers: int, starts_at_once: bool
    ) -> None:
        self._groups, self._starts_at_once = groups, starts_at_once
        self._packed: list[bytes] = []
        self._pool: Any = None
        self._began, self._n_here = time.monotonic(), 0
        self._n_episodes = sum(len(cell.schedule()) for group in groups for cell in group.cells)
        self._left = deque((place, piece) for place, group in enumerate(groups) for piece in group.pieces())
        """Pieces that nobody has, each with its group: this process takes the first, workers take the last."""
        self._n_away = 0
        """Pieces that workers have and that are not filed yet."""
        self._filing, self._workers = filing, min(workers, len(self._left))
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    def play(self) -> None:
        """Play everything; whatever goes wrong here or in a worker stops all of them."""
        try:
            if self._starts_at_once:
                self._start_workers()
            self._play_here()
            while self._n_away and self._error is None:
                time.sleep(0.02)  # a wait without an end would keep Ctrl-C waiting
            self._raise_error()
        except BaseException:
            # Ctrl-C, a failed worker or a failed policy: no worker continues for a caller that has left.
            if self._pool is not None:
                self._pool.shutdown(wait=True, kill_workers=True)
            raise
        finally:
            # The error's traceback holds the engine's buffers and leads back here. A circle of them would be left to
            # the garbage collector, which can crash on such buffers when the interpreter ends.
            self._error = None

    def _start_workers(self) -> None:
        """Start the workers; none where a policy cannot leave this process."""
        from gapfloor.engines.worker_pool import packed, shared_pool

        sources = [group.source for group in self._groups if group.source is not None]
        is_bound = any(source.given is not None and source.device != "cpu" for source in sources)
        found = [each for each in map(packed, () if is_bound else self._groups) if each is not None]
        if self._workers < 2 or len(found) < len(self._groups):
            self._workers = 1
            return
        self._packed, self._pool = found, shared_pool(self._workers - 1)
        for _ in range(1, self._workers):
            self._submit(len(self._groups) - 1, [])

    def _play_here(self) -> None:
        def on_episode(cell: CellSpec, episode_return: float) -> None:
            self._raise_error()
            self._filing.episode(cell, episode_return)
            self._n_here += 1
            spent = time.monotonic() - self._began
            # What the rest would take this process alone is known once enough has been played.
            left = spent * (self._n_episodes / self._n_here - 1) if spent > _TRIAL_SECONDS else 0.0
            if self._pool is None and self._workers > 1 and left > _START_SECONDS:
                self._start_workers()

        for place, group in enumerate(self._groups):
            for piece in play_group(group, self._pieces_here(place), on_episode=on_episode):
                self._filing.add(piece)

    def _pieces_here(self, place: int) -> Iterator[Piece]:
        while True:
            with self._lock:
                if not self._left or self._left[0][0] != place:
                    return
                piece = self._left.popleft()[1]
            yield piece

    def _submit(self, place: int, pieces: list[Piece]) -> None:
        """Have a worker play pieces of one group and then continue; none only load the policy."""
        future = self._pool.submit(_play_pieces, self._packed[place], pieces)
        future.add_done_callback(lambda done: self._continue(done, len(pieces)))

    def _continue(self, done: Future[Any], n_pieces: int) -> None:
        """File what a worker has played, and give it more; this runs in a thread of the pool."""
        try:
            if isinstance(failure := done.exception(), BrokenExecutor):
                raise GapfloorError(
                    "A worker process exited unexpectedly; it may have been killed or have run out of memory. Run the "
                    "same command again to resume; --workers 1 needs less memory."
                ) from failure
            for piece in done.result():
                for outcome in piece.outcomes.values():
                    self._filing.episode(piece.cell, outcome.episode_return)
                self._filing.add(piece)
            with self._lock:
                place, pieces = self._next_pieces()
                self._n_away += len(pieces)
            if pieces and self._error is None:
                self._submit(place, pieces)
        except BaseException as error:
            self._error = self._error or error
        finally:
            with self._lock:
                self._n_away -= n_pieces

    def _next_pieces(self) -> tuple[int, list[Piece]]:
        """Some of the last pieces, all of one group."""
        size = max(1, min(MOST_PIECES, len(self._left) // self._workers))
        place = self._left[-1][0] if self._left else 0
        pieces: list[Piece] = []
        while self._left and self._left[-1][0] == place and len(pieces) < size:
            pieces.append(self._left.pop()[1])
        return place, pieces

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _play_pieces(packed: bytes, pieces: Sequence[Piece]) -> list[PlayedPiece]:
    """Play some pieces of a group in this worker; without any, only its policy is loaded."""
    try:
        return list(play_group(_unpacked(packed), iter(pieces)))
    except BaseException as error:
        sent = sendable(error)
        if sent is error:
            raise
        raise sent from error


def sendable(error: BaseException) -> BaseException:
    """An error that another process can receive: exceptions of a user's own class cannot always be sent.

    The pool sends the traceback along, as the error's cause.
    """
    sent, kind = error, type(error).__name__
    if not isinstance(error, (GapfloorError, MemoryError)):
        is_users = is_in_users_code(error)
        sent = UsersCodeError(f"Your own code raised {kind}: {error}") if is_users else RuntimeError(kind)
    if isinstance(sent, GapfloorError):
        sent.users_frame = users_frame(error)
    return sent


@functools.lru_cache(maxsize=8)
def _unpacked(packed: bytes) -> CellGroup:
    """A group with its policy, which a worker loads once."""
    group: CellGroup = pickle.loads(packed)
    return with_policy(group)
