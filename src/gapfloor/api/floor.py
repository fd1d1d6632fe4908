"""The floor: what a policy that knows nothing returns on given level draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gapfloor.analysis.evaluation import reference_rows
from gapfloor.analysis.evaluation_results import FloorMeasurement
from gapfloor.engines.protocol import Option
from gapfloor.play.campaign import Request, plan_campaign
from gapfloor.play.protocol import make_protocol
from gapfloor.play.references import check_references
from gapfloor.play.workers import CellWorkers, Progress, Silence
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
        rows = reference_rows(
            cells=campaign.stored_cells(campaign.reference_cells),
            deterministic_rules=campaign.deterministic_rules,
        )
        return FloorMeasurement(tuple(rows), design=str(protocol.design), damaged=campaign.damaged)
