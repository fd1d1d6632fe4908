"""A group of cells that one policy (or reference) plays in one engine, and how a process plays it.

Workers share out groups: the cells of a group go through one queue, so that the end of one cell is filled up with the
beginning of the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gapfloor.actions.spaces import ActionSpace
from gapfloor.engines.engine import Engine, EngineSpec
from gapfloor.engines.procgen_state import loops_of
from gapfloor.engines.registry import engine_from_spec, unseen_engine
from gapfloor.errors import PolicyError
from gapfloor.machine import one_thread
from gapfloor.play.actor import Actor, ReferenceActor, policy_actor
from gapfloor.play.cell import CellSpec
from gapfloor.play.observers import CellObserver, CellProbe
from gapfloor.play.outcome import EpisodeOutcome, cell_record
from gapfloor.play.player import CellPlay, Job, Player
from gapfloor.play.policy_trial import try_policy
from gapfloor.policies.frame_cache import with_frame_cache
from gapfloor.policies.load import PolicySource
from gapfloor.policies.references import parse_reference
from gapfloor.records.store import Store

#: Slots of an engine that plays a reference; more slots, fewer Python steps, a longer tail.
REFERENCE_SLOTS = 32

#: Episodes (or levels, under a deterministic rule) that a worker takes at a time.
PIECE = 16

EpisodeListener = Callable[[CellSpec, float], None]

#: Cells, each with the places of its schedule that are wanted (None: all).
Piece = list[tuple[CellSpec, tuple[int, ...] | None]]


@dataclass(frozen=True)
class CellGroup:
    """Cells of one policy or reference on one engine."""

    engine: EngineSpec
    cells: tuple[CellSpec, ...]
    source: PolicySource | None = None
    """Where the policy comes from; None for a reference that needs no network."""
    probe: CellProbe | None = None
    """What observes the cells of rules that draw."""
    policy: Any = field(default=None, compare=False, repr=False)
    """The policy where this process has loaded and tried it; another process loads it from `source`."""

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to another process."""
        return {**self.__dict__, "policy": None}

    def whole_pieces(self) -> list[Piece]:
        """What a process that plays alone takes at a time: a cell, or all draws of a deterministic rule on a level set.

        Draws repeat levels, and a deterministic episode of the same level need not be played twice: one process must
        hold them all to know.
        """
        together: dict[Any, Piece] = {}
        for cell in self.cells:
            place = (cell.rule, cell.level_set) if cell.is_deterministic else cell.key
            together.setdefault(place, []).append((cell, None))
        return list(together.values())

    def pieces(self) -> list[Piece]:
        """What a worker takes at a time where several share the group: a few episodes, so that all end together.

        The draws of a deterministic rule are divided by level. A cell that is observed stays whole.
        """
        return [piece for whole in self.whole_pieces() for piece in self._divide(whole)]

    def _divide(self, whole: Piece) -> Iterator[Piece]:
        cells = [cell for cell, _ in whole]
        if cells[0].is_deterministic:
            seeds = [cell.schedule().level_seed for cell in cells]
            levels = np.unique(np.concatenate(seeds))
            for start in range(0, len(levels), PIECE):
                mine = [np.flatnonzero(np.isin(each, levels[start : start + PIECE])) for each in seeds]
                yield [
                    (cell, tuple(rows.tolist())) for cell, rows in zip(cells, mine, strict=True) if rows.size
                ]
        elif self.probe is not None:
            yield whole
        else:
            n_episodes = len(cells[0].schedule())
            for start in range(0, n_episodes, PIECE):
                yield [(cells[0], tuple(range(start, min(start + PIECE, n_episodes))))]

    def plays(self, pieces: Iterator[Piece]) -> Iterator[CellPlay]:
        """The cells of the pieces, ready to be played."""
        for piece in pieces:
            for cell, positions in piece:
                rule = cell.bound_rule
                has_states = not cell.is_deterministic and rule is not None and rule.reads_distribution
                observer = self._observer() if has_states else None
                yield CellPlay(cell, rule, cell.is_deterministic, observer, positions)

    def _observer(self) -> CellObserver | None:
        if self.probe is None or self.source is None:
            return None
        return self.probe.observer(self.engine)


@dataclass(frozen=True)
class PlayedPiece:
    """What was played of one cell, in a form that can be sent to the process that files it."""

    cell: str
    """The cell's file name."""
    outcomes: Mapping[int, EpisodeOutcome]
    """By the place in the schedule."""
    space: ActionSpace
    actor: Mapping[str, str]
    """What the actor adds to the record."""
    observed: Mapping[str, Any]
    """What the cell's observer measured."""


def play_group(
    group: CellGroup, pieces: Iterator[Piece], *, on_episode: EpisodeListener
) -> Iterator[PlayedPiece]:
    """Play pieces of a group; yields each as it becomes whole. Nothing is opened where there is nothing to play."""
    first = next(pieces, None)
    if first is None:
        return
    group = with_policy(group)
    with one_thread():
        plays = group.plays(itertools.chain([first], pieces))
        for play, actor in _play(group, plays, on_episode):
            observed = play.observer.finish() if play.observer is not None else {}
            yield PlayedPiece(
                play.spec.file_name, dict(play.outcomes), actor.space, dict(actor.record), observed
            )


def with_policy(group: CellGroup) -> CellGroup:
    """The group with its policy; one that is loaded here must be the one that its cells were specified with.

    A checkpoint that is still being trained changes under its name: cells must not be filed under another's hash.
    """
    if group.policy is not None or group.source is None:
        return group
    name, cell = group.source.name, group.cells[0]
    tried = try_policy(group.source, engine=group.engine, batch=cell.inference.batch)
    if tried.fingerprint != cell.policy:
        raise PolicyError(
            f"{name} has changed since this evaluation began: is it still being trained? Nothing more was recorded; "
            "evaluate a copy, or wait until training is done."
        )
    if tried.inference != cell.inference:
        raise PolicyError(
            f"{name} computes other logits in this process than where the evaluation began "
            f"({tried.inference} instead of {cell.inference}): nothing was recorded. Use machines of one kind and "
            "the same environment variables everywhere."
        )
    return replace(group, policy=tried.policy)


def _play(
    group: CellGroup, plays: Iterator[CellPlay], on_episode: EpisodeListener
) -> Iterator[tuple[CellPlay, Actor]]:
    """The cells as they become whole, with who played them."""
    batch = REFERENCE_SLOTS if group.source is None else group.cells[0].inference.batch
    # A policy's engine never changes its size, so the one that is asked here is also the one that plays.
    opened = [_open(group, 1 if group.source is None else batch)]
    actor = _actor(group, opened[0])

    def make_engine(slots: int) -> Engine:
        if opened and opened[0].n_slots == slots:
            return opened.pop()
        return _open(group, slots)

    def report(job: Job, outcome: EpisodeOutcome) -> None:
        on_episode(job.play.spec, outcome.episode_return)

    player = Player(
        make_engine=make_engine, actor=actor, n_slots=batch, on_episode=report, loops=loops_of(group.engine)
    )
    try:
        yield from ((play, actor) for play in player.play(plays))
    finally:
        for engine in opened:
            engine.close()


def _open(group: CellGroup, slots: int) -> Engine:
    # Nobody looks at the frames of a reference without a network.
    make = unseen_engine if group.source is None else engine_from_spec
    return make(group.engine, slots=slots, levels=group.cells[0].levels)


def _actor(group: CellGroup, engine: Engine) -> Actor:
    if group.source is None:
        reference = parse_reference(group.cells[0].rule)
        reference.check(engine.action_space)
        return ReferenceActor(reference, space=engine.action_space)
    policy = group.policy
    if engine.n_actions:  # only logits are kept by frame
        policy = with_frame_cache(policy)
    return policy_actor(policy, name=group.source.name, engine=engine)


def file_cell(store: Store, play: CellPlay, last: PlayedPiece) -> None:
    """Write a finished cell to the store; `last` is the piece that completed it."""
    store.write_cell(
        file_name=play.spec.file_name,
        content=play.spec.content(),
        labels=play.spec.labels,
        columns=_columns(play, play.finished()),
        record=finished_record(play, last),
    )


def finished_record(play: CellPlay, last: PlayedPiece) -> dict[str, Any]:
    """The record of a finished cell; `last` is the piece that completed it."""
    record = cell_record(play.schedule, play.finished(), space=last.space, actor=last.actor)
    record["device"] = play.spec.inference.device or "cpu"
    record["backend"] = play.spec.inference.backend or "host"
    record["probe_states"] = 0
    record.update(last.observed)
    return record


def _columns(play: CellPlay, outcomes: Sequence[EpisodeOutcome]) -> dict[str, Any]:
    return {
        "slot": play.schedule.slot,
        "index": play.schedule.index,
        "level_seed": play.schedule.level_seed,
        "episode_return": np.array([outcome.episode_return for outcome in outcomes]),
        "length": np.array([outcome.length for outcome in outcomes], dtype=np.int32),
    }
