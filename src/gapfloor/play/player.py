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

from gapfloor.engines.engine import Engine
from gapfloor.engines.procgen_state import LoopFinder, LoopMark, ProcgenLoops
from gapfloor.errors import UsageError
from gapfloor.levels.schedule import Schedule
from gapfloor.play.actor import Actor, Turn
from gapfloor.play.cell import CellSpec, EpisodeOutcome, episode_stream
from gapfloor.rules.rule import Rule

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
        return len(self.outcomes) == len(self.schedule if self.positions is None else self.positions)

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


class _JobQueue:
    """The episodes still to play, in the order of the cells, with repeats of deterministic ones set aside."""

    def __init__(self, cells: Iterable[CellPlay], on_episode: EpisodeListener) -> None:
        self._cells, self._on_episode = iter(cells), on_episode
        self._waiting: deque[Job] = deque()
        # By rule and level: where the rule is deterministic, episodes of one policy with equal keys are the same.
        self._known: dict[tuple[str, int], EpisodeOutcome] = {}
        self._followers: dict[tuple[str, int], list[Job]] = {}
        self.whole: deque[CellPlay] = deque()
        """Cells whose last episode has been settled."""

    def take(self) -> Job | None:
        """The next episode that must be simulated; None where none is left."""
        while not self._waiting:
            play = next(self._cells, None)
            if play is None:
                return None
            rows = list(play.schedule)
            for position in range(len(rows)) if play.positions is None else play.positions:
                job = Job(play, position, *rows[position])
                key = (play.spec.rule, job.level_seed)
                if play.repeats_levels and key in self._known:
                    self.settle(job, self._known[key])
                elif play.repeats_levels and key in self._followers:
                    self._followers[key].append(job)
                else:
                    self._waiting.append(job)
                    if play.repeats_levels:
                        self._followers[key] = []
        return self._waiting.popleft()

    def settle(self, job: Job, outcome: EpisodeOutcome) -> None:
        """File an outcome with its episode and with every episode that is the same one."""
        same = [job]
        if job.play.repeats_levels:
            key = (job.play.spec.rule, job.level_seed)
            same += self._followers.pop(key, [])
            self._known[key] = outcome
        for each in same:
            self._on_episode(each.play.spec, outcome.episode_return)
            each.play.outcomes[each.position] = outcome
            if each.play.is_done:
                self.whole.append(each.play)


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
        self._make_engine, self._actor, self._n_slots, self._loops = make_engine, actor, n_slots, loops
        self._on_episode = on_episode or (lambda cell, episode_return: None)

    def play(self, cells: Iterable[CellPlay]) -> Iterator[CellPlay]:
        """Play all cells; yields each as soon as its last episode is done.

        Cells are taken from the iterable only when a slot is free for them, so that several workers can
        share one supply.
        """
        queue = _JobQueue(cells, self._on_episode)
        jobs = [job for _ in range(self._n_slots) if (job := queue.take()) is not None]
        if jobs:
            self._start(jobs)
            while any(job is not None for job in self._jobs):
                for row in self._step():
                    done = self._jobs[row]
                    assert done is not None
                    queue.settle(done, self._outcome(row, done))
                    while queue.whole:
                        yield queue.whole.popleft()
                    self._assign(row, queue.take())
            self._engine.close()
        yield from queue.whole

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
        self._returns, self._played = np.zeros(size), np.zeros(size)
        self._lengths, self._disagreements, self._slots, self._indices = np.zeros((4, size), dtype=np.int64)
        self._counts = np.zeros_like(self._space.tallies(np.array([self._engine.noop] * size)))
        self._first = np.ones(size, dtype=bool)
        if self._loops is not None:
            self._finder = LoopFinder(size)
        for row, job in enumerate(jobs):
            self._assign(row, job)

    def _assign(self, row: int, job: Job | None) -> None:
        self._jobs[row] = job
        self._rules[row] = None if job is None else job.play.rule
        if self._loops is not None:
            self._finder.begin(row, is_deterministic=job is not None and job.play.repeats_levels)
        if job is None:
            return
        self._engine.begin(row, job.level_seed)
        stream = episode_stream(job.play.spec.stream_name, slot=job.slot, index=job.index)
        self._streams[row] = stream
        self._uniforms[row] = stream.random(self._numbers)
        self._entropies[row] = []
        self._returns[row] = self._played[row] = 0.0
        self._lengths[row] = self._disagreements[row] = 0
        self._counts[row] = 0
        self._first[row] = True
        self._slots[row], self._indices[row] = job.slot, job.index

    def _step(self) -> list[int]:
        """One step of every slot; the rows whose episode has ended."""
        actor, lengths = self._actor, self._lengths
        observations, _, _ = self._engine.observe()
        place = lengths % CHUNK
        uniforms = self._uniforms[self._rows, place]
        actions = actor.act(Turn(observations, self._first, uniforms, self._rules, self._engine.masks))
        if actor.entropies is not None:
            self._entropy_chunk[self._rows, place] = actor.entropies
        if actor.disagreements is not None:
            self._disagreements += actor.disagreements
        if actor.played_entropies is not None:
            self._played += actor.played_entropies
        for play in {id(job.play): job.play for job in self._jobs if job and job.play.observer}.values():
            self._show(play)
        if self._loops is not None and actor.is_function_of_frame:
            self._skip_loops(self._loops)
        if actions.ndim == 1:
            self._counts[self._rows, actions] += 1
        else:
            self._counts += self._space.tallies(actions)
        _, rewards, firsts = self._engine.step(actions)
        self._returns += rewards
        lengths += 1
        self._first = firsts.copy()
        for row in np.flatnonzero(place == CHUNK - 1):
            # A long episode takes the next numbers of its stream, and its entropies are stored.
            stream = self._streams[row]
            if stream is not None and self._jobs[row] is not None:
                self._uniforms[row] = stream.random(self._numbers)
                self._entropies[row].append(self._entropy_chunk[row].copy())
        return [row for row in np.flatnonzero(firsts).tolist() if self._jobs[row] is not None]

    def _skip_loops(self, loops: ProcgenLoops) -> None:
        """Move episodes that repeat themselves to the last repetition before their time is up.

        What happened since the mark is counted as often as it happens again.
        """
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
            if mark is None or now.step - mark.step > loops.longest:
                continue
            period = now.step - mark.step
            rounds = (loops.steps_left(state) - 1) // period
            end = now.step + rounds * period
            if rounds < 1 or end >= CHUNK - 1:  # the entropies of the whole episode must be in one chunk
                continue
            chunk = self._entropy_chunk[row]
            chunk[now.step : end + 1] = np.resize(chunk[mark.step : now.step], end + 1 - now.step)
            self._counts[row] += rounds * (now.action_counts - mark.action_counts)
            self._disagreements[row] += rounds * (now.disagreements - mark.disagreements)
            self._lengths[row] = end
            self._engine.load(row, loops.later(state, end - now.step))

    def _show(self, play: CellPlay) -> None:
        """Show the states of a cell that its observer wants."""
        observer, probabilities = play.observer, self._actor.probabilities
        assert observer is not None
        mine = np.array([row for row, job in enumerate(self._jobs) if job is not None and job.play is play])
        for row in mine[observer.wants(self._slots[mine], self._indices[mine], self._lengths[mine])].tolist():
            observer.see(
                self._engine, row, slot=int(self._slots[row]), index=int(self._indices[row]),
                step=int(self._lengths[row]), probabilities=None if probabilities is None else probabilities[row],
            )  # fmt: skip

    def _outcome(self, row: int, job: Job) -> EpisodeOutcome:
        """What the episode that has just ended leaves behind."""
        actor, rule, length = self._actor, job.play.rule, int(self._lengths[row])
        entropies = None
        if actor.entropies is not None:
            entropies = np.concatenate([*self._entropies[row], self._entropy_chunk[row, : length % CHUNK]])
        episode_return = float(self._returns[row])
        if not math.isfinite(episode_return):
            raise UsageError(
                f"An episode of {job.play.spec.engine.game} (level {job.level_seed}) returned {episode_return}: every "
                "reward must be a finite number."
            )
        merges = actor.disagreements is not None and rule is not None and rule.needs_classes
        changes = actor.played_entropies is not None and rule is not None and rule.changes_distribution
        return EpisodeOutcome(
            episode_return=episode_return,
            length=length,
            action_counts=self._counts[row].copy(),
            entropies=entropies,
            disagreements=int(self._disagreements[row]) if merges else None,
            played_entropy=float(self._played[row]) if changes else None,
        )
