"""A campaign: which cells are wanted, which are missing, playing those and reading what is stored.

Every measurement goes through here: floors, evaluations, sweeps, comparisons, training curves and the tasks of a study.
A `Request` says what is wanted of one game. `plan_campaign` refuses what cannot be played before the store is touched,
and scans the store once; `Campaign.play` plays what is missing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gapfloor.calibration.class_measurement import classes_for
from gapfloor.calibration.probe import ProbeSettings
from gapfloor.engines.engine import EngineSpec
from gapfloor.play.candidate import Candidate
from gapfloor.play.cell import CellSpec
from gapfloor.play.conflicts import refuse_conflicts
from gapfloor.play.group import CellGroup, group_of
from gapfloor.play.outcome import is_complete
from gapfloor.play.protocol import INFERENCE_BATCH, Protocol
from gapfloor.play.references import (
    BEST_CONSTANT,
    UNIFORM,
    best_constant,
    reference_groups,
    trial_constants,
)
from gapfloor.play.workers import CellWorkers
from gapfloor.policies.backends import BACKENDS, check_backend
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.store import Store, StoredCell, labelled_episodes
from gapfloor.rules import Rule, rule_kind


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is wanted of one game."""

    engine: EngineSpec
    protocol: Protocol
    candidates: tuple[Candidate, ...] = ()
    rules: tuple[Rule, ...] = ()
    references: tuple[str, ...] = (UNIFORM,)
    probe: ProbeSettings | None = None
    """What observes the cells of rules that draw."""
    batch: int = INFERENCE_BATCH
    device: str = "cpu"
    backend: str | None = None
    """The library for the networks of references; None: the usual one."""


@dataclass(frozen=True)
class GameCells:
    """The cells of one request."""

    runs: tuple[CellGroup, ...]
    """One group per candidate, in the order given."""
    references: tuple[CellGroup, ...]
    trials: tuple[CellGroup, ...] = ()
    """The constant actions from which `best-constant` is chosen."""

    @property
    def floor(self) -> tuple[CellSpec, ...]:
        """The cells of the uniform reference."""
        return tuple(cell for cell in _cells(self.references) if cell.run.reference == UNIFORM)


@dataclass
class Campaign:
    """The wanted cells of all games, and what the store held of them when it was scanned."""

    store: Store
    games: tuple[GameCells, ...]
    protocol: Protocol
    stored: tuple[StoredCell, ...]
    """Every whole cell of the store at that time."""
    action_notes: tuple[str, ...] = ()
    """What is unusual about how the candidates' actions are chosen."""
    damaged: tuple[str, ...] = ()
    """Wanted cells that were found cut or altered; they count as missing."""
    is_prepared: bool = False
    """Whether the folder has been made ready for writing; a store that holds every cell is only read."""
    _chosen: list[CellGroup] = field(default_factory=list)
    """The groups of `best-constant`, known once the trials have been played."""
    _whole: set[str] = field(default_factory=set)
    """Names of the cells that need not be played."""

    @property
    def missing(self) -> tuple[CellSpec, ...]:
        """The wanted cells that must still be played."""
        return tuple(_cells(self._narrow(self._groups())))

    @property
    def run_cells(self) -> tuple[CellSpec, ...]:
        """The cells of all candidates."""
        return tuple(_cells(group for game in self.games for group in game.runs))

    @property
    def reference_cells(self) -> tuple[CellSpec, ...]:
        """The cells of all references; those of `best-constant` come last, and only after play."""
        return tuple(_cells([*(group for game in self.games for group in game.references), *self._chosen]))

    @property
    def deterministic_rules(self) -> frozenset[str]:
        """The rules of the wanted cells under which an episode is a function of its level."""
        return frozenset(cell.rule for cell in _cells(self._groups()) if cell.is_deterministic)

    @property
    def notes(self) -> list[str]:
        """What a reader should know: cells that were repaired, and which action was chosen."""
        redone = [f"The cell {name} was cut or altered and has been measured again." for name in self.damaged]
        chosen = {cell.engine.game: cell.rule.partition(":")[2] for cell in _cells(self._chosen)}
        constants = [
            f"The best constant action of {game} on its training levels is {action}."
            for game, action in chosen.items()
        ]
        return [*redone, *constants, *self.action_notes]

    def stored_cells(self, cells: Sequence[CellSpec]) -> list[StoredCell]:
        """These cells as the store holds them after play; only manifests are read, the store is not scanned again."""
        return [self.store.cell(cell.file_name) for cell in cells]

    def play(self, workers: CellWorkers) -> None:
        """Play and file the cells that are missing; when this returns, every cell is in the store."""
        self._play(self._groups(), workers)
        self._chosen = [
            best_constant(game.trials, self.protocol, self.store) for game in self.games if game.trials
        ]
        if self._chosen:
            refuse_conflicts(self.stored, list(_cells(self._chosen)), root=self.store.root)
            self._play(self._chosen, workers)

    def _play(self, groups: Sequence[CellGroup], workers: CellWorkers) -> None:
        wanted = self._narrow(groups)
        if not self.is_prepared and any(group.cells for group in wanted):
            self.store.prepare()
            self.is_prepared = True
        workers.play(wanted, store=self.store)
        self._whole.update(cell.file_name for cell in _cells(wanted))

    def _groups(self) -> list[CellGroup]:
        """All groups that are known, the chosen constant actions last."""
        groups = [group for game in self.games for group in (*game.references, *game.runs, *game.trials)]
        return [*groups, *self._chosen]

    def _narrow(self, groups: Sequence[CellGroup]) -> list[CellGroup]:
        """The groups with only those cells that must still be played, each once."""
        # By file, not by key: a run's cell and that of the same run as a reference share their content.
        seen = set(self._whole)
        narrowed = []
        for group in groups:
            cells = tuple(cell for cell in group.cells if cell.file_name not in seen)
            seen.update(cell.file_name for cell in cells)
            narrowed.append(replace(group, cells=cells))
        return narrowed


def plan_campaign(
    requests: Sequence[Request],
    store: Store,
    *,
    stored: Sequence[StoredCell] | None = None,
    is_prepared: bool = False,
) -> Campaign:
    """The campaign of `requests`, which share one protocol, in `store`; nothing is played yet.

    `stored` are the cells of the store, where it has been scanned already. `is_prepared` says that the store belongs to
    a running study, which has prepared it: other processes, perhaps on other machines, are writing to it now, and their
    unfinished files must be left alone.
    """
    references = [
        reference_groups(
            each.references, protocol=each.protocol, engine=each.engine, batch=each.batch, device=each.device,
            backend=each.backend,
        )
        for each in requests
    ]  # fmt: skip
    trials = [
        trial_constants(each.protocol, each.engine) if BEST_CONSTANT in each.references else []
        for each in requests
    ]
    store.refuse_file()
    runs = [_run_groups(request, store) for request in requests]
    games = tuple(GameCells(*map(tuple, groups)) for groups in zip(runs, references, trials, strict=True))
    stored = tuple(store.cells() if stored is None else stored)
    notes = [note for each in requests for one in each.candidates for note in one.notes(each.rules)]
    campaign = Campaign(
        store, games, requests[0].protocol, stored, tuple(dict.fromkeys(notes)), is_prepared=is_prepared
    )
    records = {cell.path.stem: cell.manifest.record for cell in stored}
    # A stored cell of a run whose record lacks what is asked for now is played again: the episodes are the same.
    campaign._whole = set(records) - {
        cell.file_name
        for group in itertools.chain(*runs)
        for cell in group.cells
        if cell.file_name in records
        and not is_complete(
            records[cell.file_name],
            rule_kind(cell.rule),
            probe_states=group.probe.states if group.probe else 0,
        )
    }
    damaged = {path.stem for path in store.damaged}
    names = [cell.file_name for cell in _cells(campaign._groups())]
    campaign.damaged = tuple(name for name in names if name in damaged)
    refuse_conflicts(stored, [*campaign.run_cells, *campaign.reference_cells], root=store.root)
    return campaign


def _run_groups(request: Request, store: Store) -> list[CellGroup]:
    """One group per candidate, under rules that know the game's action classes."""
    partition, probe = None, request.probe
    if probe or any(rule.needs_classes for rule in request.rules):
        partition = classes_for(store.root, request.engine)
        probe = probe and replace(probe, classes=partition.labels)
    rules = [rule.bind(partition) for rule in request.rules]
    return [
        group_of(candidate, request.protocol, request.engine, rules, probe=probe)
        for candidate in request.candidates
    ]


def _cells(groups: Iterable[CellGroup]) -> Iterator[CellSpec]:
    return (cell for group in groups for cell in group.cells)


def backend_for(stored: Sequence[StoredCell], asked: str | None) -> str | None:
    """The backend that the user or the store names; None where neither does. One that is not installed is refused.

    A store that was begun in torch stays in torch when ONNX Runtime is installed later; `recorded` is what
    `recorded_backends` read from it.
    """
    backend = asked or next(iter(recorded_backends(stored).values()), None)
    check_backend(backend)
    return backend


def recorded_backends(stored: Sequence[StoredCell]) -> dict[str, str]:
    """The library that computed each policy of a store, by the policy's hash, in the order of file names.

    Cells of one policy in two libraries would not be comparable to the last bit.
    """
    contents = [cell.manifest.content for cell in stored]
    return {each["policy"]: each["backend"] for each in contents if each.get("backend") in BACKENDS}


def read_sample(
    store: Store, cells: Sequence[CellSpec], *, level_set: str, rule: str | None = None
) -> EpisodeSample:
    """The episodes of those of `cells` (one run's, or the floor's) that are on a level set and under a rule."""
    mine = [cell for cell in cells if cell.level_set == level_set and rule in (None, cell.rule)]
    stored = [store.cell(cell.file_name) for cell in mine]
    episodes = labelled_episodes(stored, labels=(), columns=("episode_return", "level_seed"))
    raw, played, total = [], [], np.zeros(1)
    for cell, each in zip(mine, stored, strict=True):
        record, kind = each.manifest.record, None if cell.run.reference else rule_kind(cell.rule)
        raw.append(_number(record.get("entropy_raw")))
        if kind is None or kind.changes_distribution:
            played.append(_number(None if kind is None else record.get("entropy_played")))
        else:
            played.append(0.0 if kind.is_deterministic else raw[-1])
        total = total + np.array(record.get("action_counts") or [0])
    return EpisodeSample(
        returns=episodes.column("episode_return").to_numpy(),
        levels=episodes.column("level_seed").to_numpy(),
        entropy_raw=float(np.mean(raw)),
        entropy_played=float(np.mean(played)),
        top_action_share=float(total.max() / total.sum()) if total.sum() else math.nan,
    )


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
