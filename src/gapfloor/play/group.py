"""A group of cells that one policy (or reference) plays in one engine, and how a process plays it.

Workers share out groups: the cells of a group go through one queue, so that the end of one cell is filled up with the
beginning of the next.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gapfloor.actions.spaces import ActionSpace
from gapfloor.calibration.probe import ProbeObserver, ProbeSettings
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.procgen_state import loops_of
from gapfloor.engines.registry import engine_from_spec, unseen_engine
from gapfloor.errors import PolicyError
from gapfloor.machine import one_thread
from gapfloor.play.actor import Actor, ReferenceActor, policy_actor
from gapfloor.play.candidate import Candidate, try_policy
from gapfloor.play.cell import CellSpec, EpisodeOutcome, cell_record
from gapfloor.play.player import CellPlay, EpisodeListener, Player
from gapfloor.play.protocol import Protocol
from gapfloor.policies.frame_cache import with_frame_cache
from gapfloor.policies.load import PolicySource
from gapfloor.policies.references import parse_reference
from gapfloor.rules.rule import Rule

#: Slots of an engine that plays a reference; more slots, fewer Python steps, a longer tail.
REFERENCE_SLOTS = 32

#: Episodes (or levels, under a deterministic rule) that a worker takes at a time.
PIECE = 16

#: Cells, each with the places of its schedule that are wanted (None: all).
Piece = list[tuple[CellSpec, tuple[int, ...] | None]]


@dataclass(frozen=True)
class CellGroup:
    """Cells of one policy or reference on one engine."""

    engine: EngineSpec
    cells: tuple[CellSpec, ...]
    source: PolicySource | None = None
    """Where the policy comes from; None for a reference that needs no network."""
    probe: ProbeSettings | None = None
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
        pieces: list[Piece] = []
        for whole in self.whole_pieces():
            cells = [cell for cell, _ in whole]
            seeds = [cell.schedule().level_seed for cell in cells]
            if cells[0].is_deterministic:
                levels = np.unique(np.concatenate(seeds))
                for start in range(0, len(levels), PIECE):
                    mine = [np.flatnonzero(np.isin(each, levels[start : start + PIECE])) for each in seeds]
                    placed = zip(cells, mine, strict=True)
                    pieces.append([(cell, tuple(rows.tolist())) for cell, rows in placed if rows.size])
            elif self.probe is not None:
                pieces.append(whole)
            else:
                rows = range(len(seeds[0]))
                pieces += [[(cells[0], tuple(rows[start : start + PIECE]))] for start in rows[::PIECE]]
        return pieces

    def plays(self, pieces: Iterator[Piece]) -> Iterator[CellPlay]:
        """The cells of the pieces, ready to be played."""
        for piece in pieces:
            for cell, positions in piece:
                rule = cell.bound_rule
                has_states = not cell.is_deterministic and rule is not None and rule.reads_distribution
                observer = ProbeObserver(self.engine, self.probe) if self.probe and has_states else None
                yield CellPlay(cell, observer, positions)


def group_of(
    candidate: Candidate,
    protocol: Protocol,
    engine: EngineSpec,
    rules: Sequence[Rule],
    *,
    probe: ProbeSettings | None = None,
) -> CellGroup:
    """The cells of a candidate's run under `rules`."""
    cells = tuple(
        cell
        for rule in candidate.own_rules(rules)
        for cell in protocol.cells(
            engine,
            candidate.run,
            policy=candidate.fingerprint,
            rule=str(rule),
            inference=candidate.inference,
            classes=rule.classes,
        )
    )
    return CellGroup(engine, cells, candidate.source, probe, candidate.policy)


@dataclass(frozen=True)
class PlayedPiece:
    """What was played of one cell, in a form that can be sent to the process that files it."""

    cell: CellSpec
    outcomes: Mapping[int, EpisodeOutcome]
    """By the place in the schedule."""
    space: ActionSpace
    actor: Mapping[str, str]
    """What the actor adds to the record."""
    observed: Mapping[str, Any]
    """What the cell's observer measured."""


def play_group(
    group: CellGroup, pieces: Iterator[Piece], *, on_episode: EpisodeListener | None = None
) -> Iterator[PlayedPiece]:
    """Play pieces of a group; yields each as it becomes whole. Nothing is opened where there is nothing to play."""
    first = next(pieces, None)
    if first is None:
        return
    group = with_policy(group)
    name = group.source.name if group.source is not None else ""
    with one_thread():
        plays = group.plays(itertools.chain([first], pieces))
        for play, actor in play_cells(
            plays, cell=group.cells[0], policy=group.policy, name=name, on_episode=on_episode
        ):
            observed = play.observer.finish() if play.observer is not None else {}
            yield PlayedPiece(play.spec, play.outcomes, actor.space, dict(actor.record), observed)


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


def play_cells(
    plays: Iterable[CellPlay],
    *,
    cell: CellSpec,
    policy: Any,
    name: str,
    on_episode: EpisodeListener | None = None,
    has_pictures: bool = False,
) -> Iterator[tuple[CellPlay, Actor]]:
    """The cells of one policy or plain reference as they become whole, each with who played it.

    `cell` is one of them. `name` is the policy's in messages, and `has_pictures` asks for the frames of a plain
    reference too, at which nobody looks otherwise.
    """
    is_plain = cell.is_plain_reference
    make = unseen_engine if is_plain and not has_pictures else engine_from_spec
    open_engine = functools.partial(make, cell.engine, levels=cell.levels)
    batch = REFERENCE_SLOTS if is_plain else cell.inference.batch
    # A policy's engine never changes its size, so the one that is asked for its actions also plays.
    with contextlib.closing(open_engine(slots=1 if is_plain else batch)) as first:
        actor: Actor
        if is_plain:
            reference = parse_reference(cell.rule)
            reference.check(first.action_space)
            actor = ReferenceActor(reference, space=first.action_space)
        else:
            # Only logits are kept by frame.
            policy = with_frame_cache(policy) if first.n_actions else policy
            actor = policy_actor(policy, name=name, engine=first)
        player = Player(
            make_engine=lambda slots: first if slots == first.n_slots else open_engine(slots=slots),
            actor=actor,
            n_slots=batch,
            on_episode=on_episode,
            loops=loops_of(cell.engine),
        )
        yield from ((play, actor) for play in player.play(plays))


def finished_record(play: CellPlay, last: PlayedPiece) -> dict[str, Any]:
    """The record of a finished cell; `last` is the piece that completed it."""
    return {
        **cell_record(play.schedule, play.finished(), space=last.space, actor=last.actor),
        "device": play.spec.inference.device or "cpu",
        "backend": play.spec.inference.backend or "host",
        "probe_states": 0,
        **last.observed,
    }
