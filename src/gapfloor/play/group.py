"""A group of cells that one policy (or reference) plays in one engine, and how a process plays it.

Groups are what workers share out: the cells of a group go through one queue, so that the tail of one cell is
filled with the head of the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gapfloor.actions.partition import Partition
from gapfloor.engines.procgen import EXPLORATION_LEVELS
from gapfloor.engines.protocol import Engine, EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import PolicyError
from gapfloor.levels import LevelSet
from gapfloor.machine import one_torch_thread
from gapfloor.play.actor import Actor, PolicyActor, ReferenceActor
from gapfloor.play.cell import CellSpec
from gapfloor.play.observers import CellObserver
from gapfloor.play.outcome import Outcome, cell_record
from gapfloor.play.plain_loop import play_plainly
from gapfloor.play.player import CellPlay, Job, Player
from gapfloor.policies.fingerprint import fingerprint
from gapfloor.policies.load import PolicySource
from gapfloor.policies.protocol import LogitsReader
from gapfloor.policies.references import parse_reference
from gapfloor.records.store import Store
from gapfloor.rules.rule import parse_rule

#: Slots of an engine that plays a reference; more slots, fewer Python steps, a longer tail.
REFERENCE_SLOTS = 32

#: Where the observations come from that identify a policy which brings no hash.
FINGERPRINT_LEVELS = LevelSet(0, 200)

EpisodeListener = Callable[[CellSpec, float], None]


@dataclass(frozen=True)
class ProbeSettings:
    """How many visited states of a sampled cell are cloned to find the actions that are the same there."""

    states: int = 1024
    horizon: int = 5
    classes: tuple[int, ...] = ()
    """The game's own partition, for merged entropy per game; empty if it is not known."""


@dataclass(frozen=True)
class Group:
    """Cells of one policy or reference on one engine."""

    engine: EngineSpec
    cells: tuple[CellSpec, ...]
    source: PolicySource | None = None
    """Where the policy comes from; None for a reference."""
    probe: ProbeSettings | None = None

    def units(self) -> list[list[CellSpec]]:
        """What a worker takes at a time: one cell, or all draws of a deterministic rule on a level set.

        Draws repeat levels, and a deterministic episode of the same level need not be played twice: one
        worker must hold them all to know.
        """
        together: dict[Any, list[CellSpec]] = {}
        for cell in self.cells:
            shared = self._is_deterministic(cell)
            together.setdefault((cell.rule, cell.level_set) if shared else cell.key, []).append(cell)
        return list(together.values())

    def _is_deterministic(self, cell: CellSpec) -> bool:
        if self.source is None:
            return parse_reference(cell.rule).is_deterministic
        return cell.rule in ("greedy", "merged")

    def plays(self, units: Iterator[list[CellSpec]]) -> Iterator[CellPlay]:
        """The cells of the units, ready to be played."""
        for unit in units:
            for cell in unit:
                deterministic = self._is_deterministic(cell)
                rule = None
                if self.source is not None:
                    partition = Partition(cell.classes) if cell.classes else None
                    rule = parse_rule(cell.rule, partition=partition)
                observer = None if deterministic else self._observer()
                yield CellPlay(cell, rule, deterministic, observer)

    def _observer(self) -> CellObserver | None:
        if self.probe is None or self.source is None:
            return None
        from gapfloor.calibration.probe import ProbeObserver

        return ProbeObserver(self.engine, self.probe)


def play_group(
    group: Group, units: Iterator[list[CellSpec]], *, store: Store, on_episode: EpisodeListener
) -> Iterator[CellSpec]:
    """Play units of a group and file each cell as it becomes whole.

    A device that runs out of memory is left for the CPU: what was under way is played again there, and the
    cell's record names the device it was played on.
    """
    under_way: dict[str, CellSpec] = {}

    def note(supply: Iterator[list[CellSpec]]) -> Iterator[list[CellSpec]]:
        for unit in supply:
            under_way.update({cell.key: cell for cell in unit})
            yield unit

    while True:
        policy = _load(group) if group.source is not None else None
        try:
            with one_torch_thread():
                for play in _play(group, policy, group.plays(note(units)), on_episode):
                    file_cell(store, play, policy)
                    del under_way[play.spec.key]
                    yield play.spec
            return
        except Exception as error:
            # By name: torch, jax and others each have a class of their own.
            if (
                type(error).__name__ != "OutOfMemoryError"
                or group.source is None
                or group.source.device == "cpu"
            ):
                raise
        group = replace(group, source=replace(group.source, device="cpu"))
        units = itertools.chain([list(under_way.values())], units)


def _load(group: Group) -> Any:
    """The group's policy, which must be the one that its cells were specified with.

    A checkpoint that is still being trained changes under its name: cells must not be filed under another's hash.
    """
    assert group.source is not None
    policy = group.source.load()
    if group.source.given is None:
        cell = group.cells[0]
        found = fingerprint_of(
            policy, name=group.source.name, engine=group.engine, batch=cell.inference.batch
        )
        if found != cell.policy:
            raise PolicyError(
                f"{group.source.name} has changed since this evaluation began: is it still being trained? Nothing more "
                "was recorded; evaluate a copy, or wait until it is done."
            )
    return policy


def levels_to_try(engine: EngineSpec) -> LevelSet:
    """Levels that every game of the engine's mode has."""
    if engine.engine in ("procgen", "envpool") and engine.mode == "exploration":
        only = EXPLORATION_LEVELS[engine.game]
        return LevelSet(only, only + 1)
    return FINGERPRINT_LEVELS


def fingerprint_of(policy: Any, *, name: str, engine: EngineSpec, batch: int) -> str:
    """The content hash of a policy, on observations of this engine where it brings none of its own."""
    small = engine_from_spec(engine, slots=batch, levels=levels_to_try(engine), draw=0)
    try:
        return fingerprint(policy, name=name, engine=small)
    finally:
        small.close()


def try_policy(policy: Any, *, name: str, engine: EngineSpec, batch: int) -> None:
    """Ask a policy for one batch of logits, so that one that cannot read this engine is refused before any play."""
    small = engine_from_spec(engine, slots=batch, levels=levels_to_try(engine), draw=0)
    try:
        observations, _, first = small.observe()
        LogitsReader(policy, name=name, n_slots=batch, n_actions=small.n_actions).read(observations, first)
    finally:
        small.close()


def is_probed(record: Mapping[str, Any], states: int) -> bool:
    """Whether a cell was probed with as many states as asked for, or with all it has."""
    return bool(record.get("probe_states", 0) >= min(states, record["n_steps"]))


def _play(
    group: Group, policy: Any, plays: Iterator[CellPlay], on_episode: EpisodeListener
) -> Iterator[CellPlay]:
    """The cells as they become whole: through the queue, or one after the other where levels cannot be chosen."""

    def make_engine(slots: int) -> Engine:
        return engine_from_spec(group.engine, slots=slots, levels=group.cells[0].levels)

    small = make_engine(1)
    can_begin = small.can_begin
    actor = _actor(group, policy, small)
    small.close()
    batch = REFERENCE_SLOTS if policy is None else group.cells[0].inference.batch

    def report(job: Job, outcome: Outcome) -> None:
        on_episode(job.play.spec, outcome.episode_return)

    if can_begin:
        yield from Player(make_engine=make_engine, actor=actor, n_slots=batch, on_episode=report).play(plays)
        return
    for play in plays:
        spec = play.spec
        engine = engine_from_spec(group.engine, slots=spec.design.slots, levels=spec.levels, draw=spec.draw)
        for position, outcome in enumerate(play_plainly(play, engine=engine, actor=actor, batch=batch)):
            play.put(position, outcome)
            on_episode(spec, outcome.episode_return)
        engine.close()
        yield play


def _actor(group: Group, policy: Any, engine: Engine) -> Actor:
    if policy is None:
        reference = parse_reference(group.cells[0].rule)
        reference.check(engine.n_actions)
        return ReferenceActor(reference, n_actions=engine.n_actions)
    assert group.source is not None
    return PolicyActor(policy, name=group.source.name, n_actions=engine.n_actions, noop=engine.noop)


def file_cell(store: Store, play: CellPlay, policy: Any) -> None:
    """Write a finished cell to the store."""
    outcomes = play.finished()
    record = cell_record(play.schedule, outcomes)
    record["device"] = str(getattr(policy, "device", "cpu"))
    record["backend"] = play.spec.inference.backend or "host"
    record["probe_states"] = 0
    if play.observer is not None:
        record.update(play.observer.finish())
    store.write_cell(
        file_name=play.spec.file_name,
        key=play.spec.key,
        content=play.spec.content(),
        labels=cell_labels(play.spec),
        columns=_columns(play, outcomes),
        record=record,
    )


def cell_labels(spec: CellSpec) -> dict[str, Any]:
    """The label columns of a cell's rows."""
    return {
        "game": spec.engine.game,
        "mode": spec.engine.mode,
        "budget": spec.run.budget,
        "agent": spec.run.agent,
        "seed": spec.run.seed,
        "reference": spec.run.reference,
        # A reference is one thing: where it has a network, how that acts is in the cell's content.
        "rule": spec.run.reference or spec.rule,
        "level_set": spec.level_set,
        "draw": spec.draw,
    }


def _columns(play: CellPlay, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "slot": play.schedule.slot,
        "index": play.schedule.index,
        "level_seed": play.schedule.level_seed,
        "episode_return": np.array([outcome.episode_return for outcome in outcomes]),
        "length": np.array([outcome.length for outcome in outcomes], dtype=np.int32),
    }
