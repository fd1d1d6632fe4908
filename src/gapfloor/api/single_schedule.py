"""Policies played on one schedule, beside the floor: ordinary cells of a store, shared with `evaluate`.

The same command again plays only what is missing, and a cell that `evaluate` has filed is read, not played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.actions.partition import Partition
from gapfloor.api.evaluate import (
    Candidate,
    load_candidates,
    policy_cells,
    refuse_conflicts,
)
from gapfloor.api.floor import missing_cells
from gapfloor.engines.protocol import EngineSpec
from gapfloor.errors import UsageError
from gapfloor.machine import available_cores
from gapfloor.play.cell import CellSpec
from gapfloor.play.comparison import ONE_ACTION_SHARE
from gapfloor.play.group import Group
from gapfloor.play.protocol import INFERENCE_BATCH, Protocol, make_protocol
from gapfloor.play.references import plain_cells
from gapfloor.play.workers import Progress, Silence, play_groups
from gapfloor.policies.references import Uniform
from gapfloor.records.manifest import read_manifest
from gapfloor.records.store import Store, StoredCell, read_episodes
from gapfloor.rules.rule import parse_rules
from gapfloor.statistics.conventions import NAN, Floats, Ints


@dataclass(frozen=True)
class Member:
    """A policy and the labels under which its cells are filed; None: the checkpoint's own."""

    policy: Any
    agent: str | None = None
    budget: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class Sample:
    """The episodes of one run (or the floor) under one rule on one level set, all draws, in the schedule's order."""

    returns: Floats
    levels: Ints
    entropy_raw: float
    """Of the policy's own distribution in visited states, mean over draws; NaN for the floor."""
    entropy_played: float
    """Of the distribution that was drawn from; 0 for a rule that takes one action."""
    top_action_share: float
    """Share of counted steps on which the most frequent action was taken."""

    @property
    def is_one_action(self) -> bool:
        """Whether one action was taken in nearly every visited state: then hardly anything was looked at."""
        return self.top_action_share >= ONE_ACTION_SHARE


@dataclass(frozen=True)
class Measured:
    """What was played in one game: the floor, and each member's cells, in the order given."""

    engine: EngineSpec
    floors: tuple[CellSpec, ...]
    candidates: tuple[Candidate, ...]
    cells: tuple[tuple[CellSpec, ...], ...]
    store: Store

    def floor(self, level_set: str) -> Sample:
        """The floor on a level set."""
        return read_sample(self.store, [cell for cell in self.floors if cell.level_set == level_set])

    def sample(self, member: int, rule: str, level_set: str) -> Sample:
        """A member's episodes under a rule on a level set."""
        mine = [cell for cell in self.cells[member] if (cell.rule, cell.level_set) == (rule, level_set)]
        return read_sample(self.store, mine)


@dataclass(frozen=True)
class Playing:
    """How cells are played; nothing here but `batch` and `device` can change an episode."""

    batch: int = INFERENCE_BATCH
    device: str = "cpu"
    workers: int | None = None
    progress: Progress | None = None


def measure(
    members: Mapping[str, Sequence[Member]],
    *,
    rules: str,
    store: str | Path,
    playing: Playing | None = None,
    protocol: Mapping[str, Any],
) -> tuple[dict[str, Measured], list[str]]:
    """Play the members of each game under `rules` beside the floor; what was found damaged is told in notes.

    Args:
        members: game -> its policies.
        rules: as on the command line, `sampled,greedy`.
        store: the folder of cells.
        playing: batch, device, processes.
        protocol: the settings of `make_protocol` (level sets, draws, design).
    """
    how = playing or Playing()
    agreed = make_protocol(list(members), **protocol)
    parse_rules(rules, partition=Partition((0,)))  # refuse a wrong name before anything is loaded
    if how.batch < 1:
        raise UsageError(f"--batch {how.batch} is too small: use at least 1.")
    if len(agreed.engines) != len(members):
        raise UsageError(f"{', '.join(members)} is a group of games: a policy plays one, so name that.")
    # By the name that was given: an engine's own name for its game has lost the prefix (gym:, envpool:).
    engines = dict(zip(members, agreed.engines, strict=True))
    loaded = {name: _load(members[name], engine, how) for name, engine in engines.items()}
    folder = Store(store)
    folder.prepare()
    measured = {
        name: _specify(folder, agreed, engine, loaded[name], rules) for name, engine in engines.items()
    }
    floors = [cell for each in measured.values() for cell in each.floors]
    wanted = [cell for each in measured.values() for cells in each.cells for cell in cells]
    state = missing_cells(folder, [*floors, *wanted])
    refuse_conflicts(state.stored, wanted)
    missing = {cell.key for cell in state.missing} | _without_entropy(state.stored)
    play_groups(
        [group for each in measured.values() for group in _groups(each, missing)],
        store=folder,
        workers=how.workers or available_cores(),
        progress=how.progress or Silence(),
    )
    return measured, [
        f"The cell {name} was cut or altered and has been measured again." for name in state.damaged
    ]


def read_sample(store: Store, cells: Sequence[CellSpec]) -> Sample:
    """The episodes of `cells` (draws of one place), in the order given."""
    returns, levels, raw, played, counts = [], [], [], [], []
    for cell in cells:
        path = store.cells_folder / f"{cell.file_name}.parquet"
        table = read_episodes(path)
        returns.append(table.column("episode_return").to_numpy())
        levels.append(table.column("level_seed").to_numpy())
        manifest = read_manifest(path.with_suffix(".json"))
        record = manifest.record if manifest is not None else {}
        entropy = record.get("entropy_raw")
        raw.append(NAN if entropy is None else float(entropy))
        played.append(_played(cell.rule, record, raw[-1]))
        counts.append(record.get("action_counts", [0]))
    total = np.sum(counts, axis=0)
    return Sample(
        returns=np.concatenate(returns),
        levels=np.concatenate(levels),
        entropy_raw=float(np.mean(raw)),
        entropy_played=float(np.mean(played)),
        top_action_share=float(total.max() / total.sum()) if total.sum() else NAN,
    )


def _played(rule: str, record: Mapping[str, Any], raw: float) -> float:
    if rule in ("greedy", "merged"):
        return 0.0
    if rule == "sampled":
        return raw
    return float(record.get("entropy_played", NAN))


def _load(members: Sequence[Member], engine: EngineSpec, how: Playing) -> tuple[Candidate, ...]:
    found: list[Candidate] = []
    for number, member in enumerate(members):
        seeds = [member.seed] if member.seed is not None else None
        (candidate,) = load_candidates(
            [member.policy], engine, member.agent, member.budget, seeds, how.batch, how.device
        )
        for other, earlier in zip(found, members[:number], strict=True):
            _refuse_copy(candidate, other, member, earlier)
        found.append(candidate)
    return tuple(found)


def _refuse_copy(candidate: Candidate, other: Candidate, mine: Member, earlier: Member) -> None:
    names = f"{earlier.policy} and {mine.policy}"
    if candidate.fingerprint == other.fingerprint:
        raise UsageError(f"{names} have exactly the same content: there is nothing to tell apart.")
    if candidate.run == other.run:
        raise UsageError(
            f"{names} would both be filed as {candidate.run.name}: give them other names with --agents or --seeds."
        )


def _specify(
    store: Store, protocol: Protocol, engine: EngineSpec, candidates: Sequence[Candidate], rules: str
) -> Measured:
    partition = None
    if "merged" in rules.split(","):
        from gapfloor.calibration import classes_for
        from gapfloor.engines.registry import check_cloning

        check_cloning(engine, what="The rule merged")
        partition = classes_for(store.root, engine)
    chosen = parse_rules(rules, partition=partition)
    return Measured(
        engine=engine,
        floors=tuple(plain_cells(protocol, engine, Uniform())),
        candidates=tuple(candidates),
        cells=tuple(tuple(policy_cells(protocol, engine, each, chosen)) for each in candidates),
        store=store,
    )


def _groups(measured: Measured, missing: set[str]) -> list[Group]:
    floors = tuple(cell for cell in measured.floors if cell.key in missing)
    groups = [Group(measured.engine, floors)]
    for candidate, cells in zip(measured.candidates, measured.cells, strict=True):
        mine = tuple(cell for cell in cells if cell.key in missing)
        groups.append(Group(measured.engine, mine, candidate.source))
    return groups


def _without_entropy(stored: Sequence[StoredCell]) -> set[str]:
    """Cells of changed distributions whose record does not say what was drawn from: played again, same episodes."""
    return {
        cell.manifest.key
        for cell in stored
        if str(cell.manifest.labels["rule"]).startswith(("temperature:", "epsilon:"))
        and "entropy_played" not in cell.manifest.record
    }
