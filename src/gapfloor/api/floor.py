"""The floor: what a policy that knows nothing returns on given level draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gapfloor.engines.protocol import EngineSpec, Option
from gapfloor.play.campaign import Request, plan_campaign
from gapfloor.play.cell import CellSpec
from gapfloor.play.protocol import Protocol, make_protocol
from gapfloor.play.references import check_references
from gapfloor.play.results import FloorMeasurement, FloorRow
from gapfloor.play.summary import read_cells, summarise_reference
from gapfloor.play.workers import CellWorkers, Progress, Silence
from gapfloor.records.store import Store
from gapfloor.records.temporary_store import open_store


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

    `reference` is one name or several (`gapfloor.play.references` lists them). What the store already holds under the
    same specification is read, not played again. Without `store` the episodes are forgotten.
    """
    named = [games] if isinstance(games, str) else list(games)
    protocol = make_protocol(
        named, mode=mode, options=options, train=train, test=test, draws=draws, episodes=episodes, slots=slots,
        burn_in=burn_in, design=design, repeats=repeats,
    )  # fmt: skip
    chosen = [reference] if isinstance(reference, str) else list(reference)
    check_references(chosen)
    requests = [
        Request(engine=engine, protocol=protocol, references=tuple(chosen)) for engine in protocol.engines
    ]
    with open_store(store) as opened:
        campaign = plan_campaign(requests, opened)
        campaign.play(CellWorkers(workers, progress or Silence()))
        rows = reference_rows(protocol, campaign.reference_cells, opened)
        return FloorMeasurement(tuple(rows), design=str(protocol.design), damaged=campaign.damaged)


def reference_rows(protocol: Protocol, cells: Sequence[CellSpec], store: Store) -> list[FloorRow]:
    """One row per game, reference and level set."""
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
