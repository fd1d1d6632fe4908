"""The floor: what a reference that knows nothing returns on given level draws.

`measure_floor` always measures; what the store already holds under the same specification is read, not
played again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gapfloor.engines.protocol import EngineSpec, Option
from gapfloor.machine import available_cores
from gapfloor.play.cell import CellSpec
from gapfloor.play.group import Group
from gapfloor.play.protocol import INFERENCE_BATCH, Protocol, make_protocol
from gapfloor.play.references import check_playable, check_references, measure_references
from gapfloor.play.results import FloorMeasurement, FloorRow
from gapfloor.play.summary import read_cells, summarise_reference
from gapfloor.play.workers import Progress, Silence, play_groups
from gapfloor.records.store import Store, StoredCell


def measure_floor(
    games: str | Sequence[str],
    *,
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    train: str = "0:200",
    test: str = "1000:1100",
    draws: Sequence[int] = (0, 1, 2),
    episodes: int = 128,
    slots: int = 16,
    burn_in: int = 1,
    design: str = "draws",
    repeats: int = 1,
    reference: str | Sequence[str] = "uniform",
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> FloorMeasurement:
    """The return of reference policies, for each game and level set, with its standard error.

    `reference` is one name or several (`gapfloor.play.references` lists them). Without `store` the episodes
    are forgotten once they are summarised.
    """
    named = [games] if isinstance(games, str) else list(games)
    protocol = make_protocol(
        named, mode=mode, options=options, train=train, test=test, draws=draws, episodes=episodes, slots=slots,
        burn_in=burn_in, design=design, repeats=repeats,
    )  # fmt: skip
    chosen = [reference] if isinstance(reference, str) else list(reference)
    check_references(chosen)
    if store is None:
        with tempfile.TemporaryDirectory() as folder:
            return _measure(protocol, chosen, Store(folder), workers, progress)
    return _measure(protocol, chosen, Store(store), workers, progress)


def _measure(
    protocol: Protocol,
    references: Sequence[str],
    store: Store,
    workers: int | None,
    progress: Progress | None,
) -> FloorMeasurement:
    check_playable(references, protocol)
    store.prepare()
    damaged: dict[str, None] = {}

    def play(groups: Sequence[Group]) -> None:
        state = missing_cells(store, [cell for group in groups for cell in group.cells])
        damaged.update(dict.fromkeys(state.damaged))
        play_groups(
            state.narrow(groups),
            store=store,
            workers=workers or available_cores(),
            progress=progress or Silence(),
        )

    wanted = measure_references(references, protocol=protocol, store=store, play=play, batch=INFERENCE_BATCH)
    rows = reference_rows(protocol, wanted, store)
    return FloorMeasurement(tuple(rows), design=str(protocol.design), damaged=tuple(damaged))


def reference_rows(protocol: Protocol, cells: Sequence[CellSpec], store: Store) -> list[FloorRow]:
    """One row a game, reference and level set."""
    found = read_cells(store, cells)
    groups: dict[tuple[EngineSpec, str, str], list[CellSpec]] = {}
    for cell in cells:
        place = (cell.engine, cell.run.reference, cell.level_set)
        groups.setdefault(place, []).append(cell)
    rows = []
    for (engine, reference, role), mine in groups.items():
        mean, sem, n, networks = summarise_reference(mine, found)
        rows.append(
            FloorRow(
                engine.game,
                engine.mode,
                role,
                str(mine[0].levels),
                reference,
                mean,
                sem,
                n,
                protocol.draws,
                engine=engine.engine,
                engine_version=engine.version,
                n_networks=networks,
            )
        )
    return rows


class MissingCells:
    """What must still be played, and what was found damaged."""

    def __init__(self, missing: list[CellSpec], damaged: tuple[str, ...], stored: list[StoredCell]) -> None:
        self.missing = missing
        self.damaged = damaged
        self.stored = stored

    def narrow(self, groups: Sequence[Group]) -> list[Group]:
        """The groups with only those cells that must still be played."""
        missing = {cell.key for cell in self.missing}
        return [replace(g, cells=tuple(c for c in g.cells if c.key in missing)) for g in groups]


def missing_cells(store: Store, wanted: Sequence[CellSpec]) -> MissingCells:
    """The wanted cells that the store does not hold whole."""
    stored = store.cells()
    # By file, not by key: an agent's cell and that of the same agent as a reference share their content.
    have = {cell.path.stem for cell in stored}
    damaged = tuple(path.stem for path in store.damaged)
    return MissingCells([cell for cell in wanted if cell.file_name not in have], damaged, stored)
