"""A campaign: which cells are wanted, which are missing, playing those and reading what is stored.

Every measurement goes through here: floors, evaluations, sweeps, comparisons, training curves and the tasks of a study.
`plan_campaign` refuses what cannot be played or filed before the store is touched,
and scans the store once; `Campaign.play` plays what is missing.

Public repositories do contain copied "seeds": one content under two names would count one run twice, and one name for
two contents would be averaged by the analysis. `refuse_conflicts` lets neither into a store.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gapfloor.calibration.class_measurement import classes_for
from gapfloor.calibration.probe import ProbeSettings
from gapfloor.engines.engine import EngineSpec
from gapfloor.errors import StoreError, UsageError
from gapfloor.play.candidate import Candidate
from gapfloor.play.cell import PROTOCOL_VERSION, CellSpec, is_complete
from gapfloor.play.group import CellGroup, group_of
from gapfloor.play.protocol import InferenceSettings, Protocol
from gapfloor.play.references import (
    BEST_CONSTANT,
    UNIFORM,
    best_constant,
    reference_groups,
    trial_constants,
)
from gapfloor.play.workers import CellWorkers
from gapfloor.policies.backends import BACKENDS, check_backend
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import DESIGN_PARTS, Store
from gapfloor.records.stored_cell import StoredCell, canonical_json
from gapfloor.rules.rule import Rule, rule_kind


@dataclass(frozen=True)
class GameCells:
    """The wanted cells of one game."""

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
    protocol: Protocol,
    store: Store,
    *,
    candidates: Sequence[Sequence[Candidate]] | None = None,
    rules: Sequence[Rule] = (),
    references: Sequence[str] = (UNIFORM,),
    probe: ProbeSettings | None = None,
    inference: InferenceSettings | None = None,
    stored: Sequence[StoredCell] | None = None,
    is_prepared: bool = False,
) -> Campaign:
    """The campaign of a protocol in `store`; nothing is played yet.

    Args:
        protocol: what is played of each game.
        store: where cells are kept.
        candidates: the policies of each engine of the protocol, in its order; None: references alone.
        rules: how the policies' actions are chosen.
        references: names of references, played on the same schedule.
        probe: what observes the cells of rules that draw.
        inference: how the networks of references are computed.
        stored: the cells of the store, where it has been scanned already.
        is_prepared: whether the store belongs to a running study, which has prepared it: other processes, perhaps on
            other machines, are writing to it now, and their unfinished files must be left alone.
    """
    candidates = candidates or [()] * len(protocol.engines)
    reference_cells = [
        reference_groups(references, protocol, engine, inference or InferenceSettings())
        for engine in protocol.engines
    ]
    trials = [
        trial_constants(protocol, engine) if BEST_CONSTANT in references else []
        for engine in protocol.engines
    ]
    runs = [
        _run_groups(mine, protocol, engine, rules, probe=probe, store=store)
        for mine, engine in zip(candidates, protocol.engines, strict=True)
    ]
    groups = zip(runs, reference_cells, trials, strict=True)
    games = tuple(GameCells(*map(tuple, each)) for each in groups)
    stored = tuple(store.cells() if stored is None else stored)
    notes = [note for mine in candidates for one in mine for note in one.notes(rules)]
    campaign = Campaign(store, games, protocol, stored, tuple(dict.fromkeys(notes)), is_prepared=is_prepared)
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
            probe_states=probe.states if probe else 0,
        )
    }
    damaged = {path.stem for path in store.damaged}
    names = [cell.file_name for cell in _cells(campaign._groups())]
    campaign.damaged = tuple(name for name in names if name in damaged)
    refuse_conflicts(stored, [*campaign.run_cells, *campaign.reference_cells], root=store.root)
    return campaign


def _run_groups(
    candidates: Sequence[Candidate],
    protocol: Protocol,
    engine: EngineSpec,
    rules: Sequence[Rule],
    *,
    probe: ProbeSettings | None,
    store: Store,
) -> list[CellGroup]:
    """One group per candidate, under rules that know the game's action classes."""
    partition = None
    if probe or any(rule.needs_classes for rule in rules):
        partition = classes_for(store.root, engine)
        probe = probe and replace(probe, classes=partition.labels)
    bound = [rule.bind(partition) for rule in rules]
    return [group_of(candidate, protocol, engine, bound, probe=probe) for candidate in candidates]


def _cells(groups: Iterable[CellGroup]) -> Iterator[CellSpec]:
    return (cell for group in groups for cell in group.cells)


def backend_for(stored: Sequence[StoredCell], asked: str | None) -> str | None:
    """The backend that the user or the store names; None where neither does. One that is not installed is refused.

    A store that was begun in torch stays in torch when ONNX Runtime is installed later.
    """
    backend = asked or next(iter(recorded_backends(stored).values()), None)
    if backend is not None:
        check_backend(backend)
    return backend


def recorded_backends(stored: Sequence[StoredCell]) -> dict[str, str]:
    """The library that computed each policy of a store, by the policy's hash, in the order of file names.

    Cells of one policy in two libraries would not be comparable to the last bit.
    """
    contents = [cell.manifest.content for cell in stored]
    return {each["policy"]: each["backend"] for each in contents if each.get("backend") in BACKENDS}


#: A run is measured once per store, whatever the engine's version: its cells of another one are not comparable.
_RUN_DESIGN = tuple(part for part in DESIGN_PARTS if part not in ("engine", "engine_version"))


def refuse_conflicts(stored: Sequence[StoredCell], wanted: Sequence[CellSpec], *, root: Path) -> None:
    """Refuse cells that cannot be filed with those of a store, or with each other."""
    old = {cell.manifest.content["protocol"] for cell in stored} - {PROTOCOL_VERSION}
    if old:
        raise StoreError(
            f"The store {root} was filled by another version of gapfloor (protocol {min(old)}; this is "
            f"{PROTOCOL_VERSION}): analyse and report read it, but nothing can be added. Use another --store."
        )
    runs = {(cell.policy, cell.run, cell.engine): cell for cell in wanted if not cell.run.reference}
    for cell in runs.values() if stored else ():
        refuse_other_name(stored, policy=cell.policy, run=RunIdentity.from_labels(cell.labels))
        refuse_other_arithmetic(stored, cell)
    mine: dict[tuple[Any, ...], CellSpec] = {}
    for cell in wanted:
        other = mine.setdefault(_place(cell.labels, cell.content()), cell)
        if other.key != cell.key:  # e.g. upper:A and upper:B
            raise UsageError(
                f"Two different policies would both be filed as the reference {cell.run.name} of {cell.engine.game}: "
                "name one, or measure the other in another --store."
            )
    for each in stored:
        theirs = each.manifest.content
        found = mine.get(_place(each.manifest.labels, theirs))
        if found is not None and found.key != each.manifest.key:
            changes = "; ".join(
                f"{name}: {theirs.get(name)} there, {value} here"
                for name, value in found.content().items()
                if theirs.get(name) != value
            )
            raise StoreError(
                f"The store {root} holds another {found.run.name} of {found.engine.game}, made under another "
                f"specification ({changes}): use another --store."
            )


def refuse_other_arithmetic(stored: Sequence[StoredCell], cell: CellSpec) -> None:
    """Refuse a policy whose logits on a fixed batch differ here from those behind the cells that the store holds."""
    mine, engine = cell.inference, cell.engine
    frames = (engine.game, engine.mode, dict(engine.options))
    for each in stored:
        theirs = each.manifest.content
        is_comparable = theirs["policy"] == cell.policy and theirs.get("batch") == mine.batch
        # The hash is of logits on a game's own first frames.
        labels = each.manifest.labels
        is_comparable &= frames == (labels["game"], labels["mode"], theirs["options"])
        if is_comparable and theirs.get("arithmetic", mine.arithmetic) != mine.arithmetic:
            remedy = "Use machines of one kind, or another --store."
            if theirs["backend"] != mine.backend and theirs["backend"] in BACKENDS:
                remedy = f"Use --backend {theirs['backend']}, or another --store."
            raise StoreError(
                f"The cells of {cell.run.name} in this store were computed with another arithmetic "
                f"({theirs['backend']} {theirs['backend_version']}) than this machine has "
                f"({mine.backend} {mine.backend_version}), and the two cannot be mixed. {remedy}"
            )


def refuse_other_name(stored: Sequence[StoredCell], *, policy: str, run: RunIdentity) -> None:
    """Refuse a policy that the store holds as another run, and a run that it holds with another policy."""
    for cell in (cell for cell in stored if not cell.is_reference):
        other = RunIdentity.from_labels(cell.manifest.labels)
        same_policy = cell.manifest.content["policy"] == policy
        if same_policy and run != other and (run.game, run.mode) == (other.game, other.mode):
            raise StoreError(
                f"{run.description} has exactly the content of {other.description}, which this store already "
                "holds: copies of one checkpoint are one run."
            )
        if run == other and not same_policy:
            raise StoreError(
                f"This store already holds another policy as {run.description}: give this one another "
                "--agent, --budget or --seeds, or use another --store."
            )


def _place(labels: Mapping[str, Any], content: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where the analysis puts a cell: its labels, in its own design."""
    parts = DESIGN_PARTS if labels["reference"] else _RUN_DESIGN
    return (
        *(labels[name] for name in sorted(labels)),
        *(canonical_json(content.get(part)) for part in parts),
    )
