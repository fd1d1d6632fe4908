"""The player: episodes taken from a queue, each a pure function of policy, rule, level and its own stream.

Because an episode starts from its level's own initial state and draws from its own stream, the player can take
shortcuts that a plain loop cannot: burn-in episodes are not played, a slot that is done takes the
next episode of any cell at once, an episode that a deterministic rule has played on the same level is not
simulated again, and an episode that only repeats itself is moved to its end. `tests/balanced_loop.py` has none of
these; the tests compare the two byte for byte.

Benchmark rows: sampled-starpilot and floor-starpilot-after-start (burn-in and the queue), greedy-fruitbot (a level
once, although the draws name 384 episodes of at most 200 levels) and greedy-miner (`LoopFinder`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import Engine, State
from gapfloor.engines.procgen_state import LoopFinder, LoopMark, ProcgenLoops
from gapfloor.errors import UsageError
from gapfloor.levels import Schedule
from gapfloor.play.actor import Actor, Turn
from gapfloor.play.cell import CellSpec, episode_stream
from gapfloor.play.outcome import EpisodeOutcome
from gapfloor.rules import Rule

#: Uniform numbers taken from a stream at a time; most ProcGen episodes need fewer than this.
CHUNK = 1024

#: Hears of every episode as soon as it has been played or copied: its cell and its return.
EpisodeListener = Callable[[CellSpec, float], None]


class CellObserver(Protocol):
    """Sees some of the states that a cell visits and adds fields to its record.

    `gapfloor.calibration.probe` has the one that measures merged entropy, `gapfloor.play.replay` one that keeps frames.
    """

    def wants(
        self, slot: npt.NDArray[np.int64], index: npt.NDArray[np.int64], step: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Which of the current states to hand over; it depends on these numbers alone, never on the order of play."""
        ...

    def see(
        self,
        engine: Engine,
        row: int,
        *,
        slot: int,
        index: int,
        step: int,
        probabilities: npt.NDArray[np.float64] | None,
    ) -> None:
        """One wanted state, before its action is applied; `row` is its place in the running engine.

        `probabilities` are those of numbered actions; None where the policy has others.
        """
        ...

    def finish(self) -> dict[str, Any]:
        """Fields for the cell record, after the last episode."""
        ...


@dataclass
class CellPlay:
    """A cell and what has been played of it."""

    spec: CellSpec
    observer: CellObserver | None = None
    positions: Sequence[int] | None = None
    """The places in the schedule that are played here; None: all of them."""
    outcomes: dict[int, EpisodeOutcome] = field(default_factory=dict)
    """What has been played, by its place in the schedule."""
    rule: Rule | None = field(init=False)
    """None for a reference."""
    repeats_levels: bool = field(init=False)
    """Whether every episode on a level is the same and nobody watches, so that one of them is enough."""
    schedule: Schedule = field(init=False)

    def __post_init__(self) -> None:
        self.rule = self.spec.bound_rule
        self.repeats_levels = self.spec.is_deterministic and self.observer is None
        self.schedule = self.spec.schedule()

    @property
    def is_done(self) -> bool:
        """Whether every episode that is wanted here has been played."""
        wanted = self.schedule if self.positions is None else self.positions
        return len(self.outcomes) == len(wanted)

    def jobs(self) -> Iterator[Job]:
        """The episodes that are wanted here, in the order of the schedule."""
        schedule = self.schedule
        for position in range(len(schedule)) if self.positions is None else self.positions:
            yield Job(
                self,
                position,
                int(schedule.slot[position]),
                int(schedule.index[position]),
                int(schedule.level_seed[position]),
            )

    def finished(self) -> list[EpisodeOutcome]:
        """The outcomes in the order of the schedule."""
        return [self.outcomes[position] for position in range(len(self.schedule))]


@dataclass(frozen=True)
class Job:
    """One episode of a cell: `position` is its place in the schedule."""

    play: CellPlay
    position: int
    slot: int
    index: int
    level_seed: int

    @property
    def reuse_key(self) -> tuple[str, int]:
        """Episodes of one policy with equal keys are the same where the rule is deterministic."""
        return self.play.spec.rule, self.level_seed


class Player:
    """Plays the cells of one policy (or reference) in one engine."""

    def __init__(
        self,
        *,
        make_engine: Callable[[int], Engine],
        actor: Actor,
        n_slots: int,
        on_episode: EpisodeListener | None = None,
        loops: ProcgenLoops | None = None,
    ) -> None:
        self._loops = loops
        self._make_engine = make_engine
        self._actor = actor
        self._n_slots = n_slots
        self._on_episode = on_episode or (lambda cell, episode_return: None)

    def play(self, cells: Iterable[CellPlay]) -> Iterator[CellPlay]:
        """Play all cells; yields each as soon as its last episode is done.

        Cells are taken from the iterable only when a slot is free for them, so that several workers can
        share one supply.
        """
        self._queue = _JobQueue(cells, self._on_episode)
        first_jobs = self._queue.take(self._n_slots)
        if first_jobs:
            self._start(first_jobs)
            yield from self._play_until_dry()
            self._engine.close()
        yield from self._queue.completed()

    def _start(self, jobs: Sequence[Job]) -> None:
        size = self._n_slots if self._actor.needs_full_batch else len(jobs)
        self._engine = self._make_engine(size)
        self._actor.resize(size)
        self._rows = np.arange(size)
        self._jobs: list[Job | None] = [None] * size
        self._rules: list[Rule | None] = [None] * size
        self._streams: list[np.random.Generator | None] = [None] * size
        self._entropies: list[list[npt.NDArray[np.float64]]] = [[] for _ in range(size)]
        self._space = self._engine.action_space
        # One number per step, or one per dimension where actions are rows.
        self._numbers = (CHUNK, self._space.width) if self._space.width else (CHUNK,)
        self._uniforms = np.zeros((size, *self._numbers))
        self._entropy_chunk = np.zeros((size, CHUNK))
        self._returns = np.zeros(size)
        self._lengths = np.zeros(size, dtype=np.int64)
        self._disagreements = np.zeros(size, dtype=np.int64)
        self._played = np.zeros(size)
        self._counts = np.zeros_like(self._space.tallies(np.array([self._engine.noop] * size)))
        self._first = np.ones(size, dtype=bool)
        self._slots = np.zeros(size, dtype=np.int64)
        self._indices = np.zeros(size, dtype=np.int64)
        self._finder = LoopFinder(size)
        for row, job in enumerate(jobs):
            self._assign(row, job)

    def _assign(self, row: int, job: Job | None) -> None:
        self._jobs[row] = job
        if job is None:
            self._rules[row] = None
            self._finder.begin(row, is_deterministic=False)
            return
        self._engine.begin(row, job.level_seed)
        self._finder.begin(row, is_deterministic=job.play.repeats_levels)
        self._rules[row] = job.play.rule
        stream = episode_stream(job.play.spec.stream_name, slot=job.slot, index=job.index)
        self._streams[row] = stream
        self._uniforms[row] = stream.random(self._numbers)
        self._entropies[row] = []
        self._returns[row] = self._played[row] = 0.0
        self._lengths[row] = self._disagreements[row] = 0
        self._counts[row] = 0
        self._first[row] = True
        self._slots[row], self._indices[row] = job.slot, job.index

    def _play_until_dry(self) -> Iterator[CellPlay]:
        while any(job is not None for job in self._jobs):
            for row in self._step():
                job = self._jobs[row]
                assert job is not None
                self._queue.settle(job, self._outcome(row, job))
                yield from self._queue.completed()
                next_jobs = self._queue.take(1)
                self._assign(row, next_jobs[0] if next_jobs else None)

    def _step(self) -> npt.NDArray[np.int64]:
        """One step of every slot; the rows whose episode has ended."""
        observations, _, _ = self._engine.observe()
        place = self._lengths % CHUNK
        uniforms = self._uniforms[self._rows, place]
        actions = self._actor.act(Turn(observations, self._first, uniforms, self._rules, self._engine.masks))
        self._watch(place)
        if self._loops is not None and self._actor.is_function_of_frame:
            self._skip_loops(self._loops)
        if actions.ndim == 1:
            self._counts[self._rows, actions] += 1
        else:
            self._counts += self._space.tallies(actions)
        _, rewards, firsts = self._engine.step(actions)
        self._returns += rewards
        self._lengths += 1
        self._first = firsts.copy()
        if (place == CHUNK - 1).any():
            self._renew(np.flatnonzero(place == CHUNK - 1))
        return np.array(
            [row for row in np.flatnonzero(firsts) if self._jobs[row] is not None], dtype=np.int64
        )

    def _watch(self, place: npt.NDArray[np.int64]) -> None:
        """Add up what the actor measured, and show the states that observers want."""
        if self._actor.entropies is not None:
            self._entropy_chunk[self._rows, place] = self._actor.entropies
        if self._actor.disagreements is not None:
            self._disagreements += self._actor.disagreements
        if self._actor.played_entropies is not None:
            self._played += self._actor.played_entropies
        observers = {id(job.play): job.play for job in self._jobs if job is not None and job.play.observer}
        for play in observers.values():
            self._show(play)

    def _skip_loops(self, loops: ProcgenLoops) -> None:
        """Move episodes that repeat themselves to the last repetition before their time is up."""
        entropies = self._actor.entropies
        if entropies is None:
            entropies = np.zeros(len(self._rows))
        for row in self._finder.due(self._lengths, entropies):
            state = self._engine.save(row)
            now = LoopMark(
                step=int(self._lengths[row]),
                position=loops.position(state),
                episode_return=float(self._returns[row]),
                action_counts=self._counts[row].copy(),
                disagreements=int(self._disagreements[row]),
            )
            mark = self._finder.found(row, now, float(entropies[row]))
            if mark is not None and now.step - mark.step <= loops.longest:
                self._repeat(row, mark, now, state, loops)

    def _repeat(self, row: int, mark: LoopMark, now: LoopMark, state: State, loops: ProcgenLoops) -> None:
        """Count what happened since the mark as often as it happens again, and move the slot to that time."""
        period = now.step - mark.step
        rounds = (loops.steps_left(state) - 1) // period
        end = now.step + rounds * period
        if rounds < 1 or end >= CHUNK - 1:  # the entropies of the whole episode must be in one chunk
            return
        chunk = self._entropy_chunk[row]
        chunk[now.step : end + 1] = np.resize(chunk[mark.step : now.step], end + 1 - now.step)
        self._counts[row] += rounds * (now.action_counts - mark.action_counts)
        self._disagreements[row] += rounds * (now.disagreements - mark.disagreements)
        self._lengths[row] = end
        self._engine.load(row, loops.later(state, end - now.step))

    def _show(self, play: CellPlay) -> None:
        observer = play.observer
        probabilities = self._actor.probabilities
        assert observer is not None
        mine = np.array(
            [row for row, job in enumerate(self._jobs) if job is not None and job.play is play],
            dtype=np.int64,
        )
        wanted = observer.wants(self._slots[mine], self._indices[mine], self._lengths[mine])
        for row in mine[wanted]:
            observer.see(
                self._engine,
                int(row),
                slot=int(self._slots[row]),
                index=int(self._indices[row]),
                step=int(self._lengths[row]),
                probabilities=None if probabilities is None else probabilities[row],
            )

    def _renew(self, rows: npt.NDArray[np.int64]) -> None:
        """Take the next numbers of long episodes' streams, and store their entropies."""
        for row in rows:
            stream = self._streams[row]
            if stream is not None and self._jobs[row] is not None:
                self._uniforms[row] = stream.random(self._numbers)
                self._entropies[row].append(self._entropy_chunk[row].copy())

    def _outcome(self, row: int, job: Job) -> EpisodeOutcome:
        """What the episode that has just ended leaves behind."""
        length = int(self._lengths[row])
        entropies = None
        if self._actor.entropies is not None:
            entropies = np.concatenate([*self._entropies[row], self._entropy_chunk[row, : length % CHUNK]])
        rule = job.play.rule
        merges = self._actor.disagreements is not None and rule is not None and rule.needs_classes
        changes = self._actor.played_entropies is not None and rule is not None and rule.changes_distribution
        outcome = EpisodeOutcome(
            episode_return=float(self._returns[row]),
            length=length,
            action_counts=self._counts[row].copy(),
            entropies=entropies,
            disagreements=int(self._disagreements[row]) if merges else None,
            played_entropy=float(self._played[row]) if changes else None,
        )
        if not math.isfinite(outcome.episode_return):
            raise UsageError(
                f"An episode of {job.play.spec.engine.game} (level {job.level_seed}) returned "
                f"{outcome.episode_return}: every reward must be a finite number."
            )
        return outcome


class _JobQueue:
    """The episodes still to play, in the order of the cells, with repeats of deterministic ones set aside."""

    def __init__(self, cells: Iterable[CellPlay], on_episode: EpisodeListener) -> None:
        self._cells, self._on_episode = iter(cells), on_episode
        self._waiting: deque[Job] = deque()
        self._known: dict[tuple[str, int], EpisodeOutcome] = {}
        self._followers: dict[tuple[str, int], list[Job]] = {}
        self._completed: list[CellPlay] = []

    def take(self, count: int) -> list[Job]:
        """Up to `count` episodes that must be simulated."""
        jobs: list[Job] = []
        while len(jobs) < count and (self._waiting or self._open_next_cell()):
            if self._waiting:
                jobs.append(self._waiting.popleft())
        return jobs

    def _open_next_cell(self) -> bool:
        play = next(self._cells, None)
        if play is None:
            return False
        for job in play.jobs():
            if not play.repeats_levels:
                self._waiting.append(job)
            elif job.reuse_key in self._known:
                self._put(job, self._known[job.reuse_key])
            elif job.reuse_key in self._followers:
                self._followers[job.reuse_key].append(job)
            else:
                self._followers[job.reuse_key] = []
                self._waiting.append(job)
        return True

    def settle(self, job: Job, outcome: EpisodeOutcome) -> None:
        """File an outcome with its episode and with every episode that is the same one."""
        same = [job]
        if job.play.repeats_levels:
            same += self._followers.pop(job.reuse_key)
            self._known[job.reuse_key] = outcome
        for each in same:
            self._put(each, outcome)

    def _put(self, job: Job, outcome: EpisodeOutcome) -> None:
        self._on_episode(job.play.spec, outcome.episode_return)
        job.play.outcomes[job.position] = outcome
        if job.play.is_done:
            self._completed.append(job.play)

    def completed(self) -> list[CellPlay]:
        """Cells that have become whole since the last call."""
        done, self._completed = self._completed, []
        return done
