"""The floor: what a reference that knows nothing returns on given level draws.

`measure_floor` always measures; what the store already holds under the same specification is read, not
played again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from gapfloor.engines.protocol import EngineSpec, Option
from gapfloor.evaluation.cell import CellSpec, Run
from gapfloor.evaluation.group import Group
from gapfloor.evaluation.results import FloorMeasurement, FloorRow
from gapfloor.evaluation.settings import Protocol, make_protocol
from gapfloor.evaluation.summary import read_cells, summarise
from gapfloor.evaluation.workers import Progress, Silence, default_workers, play_groups
from gapfloor.policies.references import Reference, parse_reference
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
    reference: str = "uniform",
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> FloorMeasurement:
    """The return of a reference policy, for each game and level set, with its per-episode standard error.

    Without `store` the episodes are forgotten once they are summarised.
    """
    named = [games] if isinstance(games, str) else list(games)
    protocol = make_protocol(
        named, mode=mode, options=options, train=train, test=test, draws=draws, episodes=episodes, slots=slots,
        burn_in=burn_in, design=design, repeats=repeats,
    )  # fmt: skip
    chosen = parse_reference(reference)
    if store is None:
        with tempfile.TemporaryDirectory() as folder:
            return _measure(protocol, chosen, Store(folder), workers, progress)
    return _measure(protocol, chosen, Store(store), workers, progress)


def _measure(
    protocol: Protocol, reference: Reference, store: Store, workers: int | None, progress: Progress | None
) -> FloorMeasurement:
    store.prepare()
    wanted = [cell for engine in protocol.engines for cell in floor_cells(protocol, engine, reference)]
    stored = missing_cells(store, wanted)
    groups = [
        Group(engine, tuple(cell for cell in stored.missing if cell.engine == engine))
        for engine in protocol.engines
    ]
    play_groups(groups, store=store, workers=workers or default_workers(), progress=progress or Silence())
    found = read_cells(store, wanted)
    rows = []
    for engine in protocol.engines:
        for role, levels in protocol.level_sets:
            returns = [found[cell.key] for cell in wanted if cell.engine == engine and cell.level_set == role]
            mean, sem, n = summarise(returns)
            rows.append(
                FloorRow(
                    engine.game,
                    engine.mode,
                    role,
                    str(levels),
                    str(reference),
                    mean,
                    sem,
                    n,
                    protocol.draws,
                    engine=engine.engine,
                    engine_version=engine.version,
                )
            )
    return FloorMeasurement(tuple(rows), design=str(protocol.design), damaged=stored.damaged)


def floor_cells(protocol: Protocol, engine: EngineSpec, reference: Reference) -> list[CellSpec]:
    """The cells of a reference on one engine."""
    return [
        CellSpec(
            engine=engine,
            run=Run(reference=str(reference)),
            policy=str(reference),
            rule=str(reference),
            level_set=role,
            levels=levels,
            draw=draw,
            design=protocol.design,
        )
        for role, levels in protocol.level_sets
        for draw in protocol.draws
    ]


class MissingCells:
    """What must still be played, and what was found damaged."""

    def __init__(self, missing: list[CellSpec], damaged: tuple[str, ...], stored: list[StoredCell]) -> None:
        self.missing = missing
        self.damaged = damaged
        self.stored = stored


def missing_cells(store: Store, wanted: Sequence[CellSpec]) -> MissingCells:
    """The wanted cells that the store does not hold whole."""
    stored = store.cells()
    have = {cell.manifest.key for cell in stored}
    damaged = tuple(path.stem for path in store.damaged)
    return MissingCells([cell for cell in wanted if cell.key not in have], damaged, stored)
