"""One checkpoint at a grid of temperatures between greedy and sampled, on the same levels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.sweep import Sweep, analyse_sweep, rule_at
from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import UsageError
from gapfloor.play.campaign import Campaign
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import INFERENCE_BATCH, make_protocol
from gapfloor.play.samples import read_sample
from gapfloor.play.workers import Progress
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules

TEMPERATURES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def sweep(
    policy: Any,
    *,
    game: str,
    temperatures: Sequence[float] = TEMPERATURES,
    agent: str | None = None,
    budget: str | None = None,
    seed: int | None = None,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    backend: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    store: str | Path | None = None,
    **protocol: Any,
) -> Sweep:
    """One policy at each of `temperatures` on the same levels, compared with the floor.

    Every point is an ordinary cell: 0 is filed as `greedy`, 1 as `sampled`. Without `store` the episodes are forgotten
    once they are summarised. `protocol` holds the settings that `evaluate` takes: `train`, `test`, `draws`,
    `episodes`, `mode`, ...
    """
    grid = check_temperatures(temperatures)
    agreed = make_protocol([game], **protocol)
    with open_store(store) as opened:
        campaign = play_policies(
            {game: [Entrant(policy, agent, budget, seed)]},
            rules=parse_rules([rule_at(value) for value in grid]),
            protocol=agreed,
            store=opened,
            batch=batch,
            device=device,
            backend=backend,
            workers=workers,
            progress=progress,
        )
        return _analyse(campaign, grid)


def _analyse(campaign: Campaign, grid: tuple[float, ...]) -> Sweep:
    (game,) = campaign.games
    store, cells = campaign.store, game.runs[0].cells
    level_sets = [role for role, _ in campaign.protocol.level_sets]
    return analyse_sweep(
        {
            role: {value: read_sample(store, cells, level_set=role, rule=rule_at(value)) for value in grid}
            for role in level_sets
        },
        {role: read_sample(store, game.floor, level_set=role) for role in level_sets},
        run=RunIdentity.from_labels(cells[0].labels),
        design=str(campaign.protocol.design),
        draws=campaign.protocol.draws,
        notes=campaign.notes,
    )


def check_temperatures(temperatures: Sequence[float]) -> tuple[float, ...]:
    """The grid from cold to hot; fewer than two, duplicates and negative or infinite values are refused."""
    for value in temperatures:
        if not 0 <= value < float("inf"):
            raise UsageError(
                f"The temperature {value:g} is out of range: use 0 (greedy) or more; 1 is sampled."
            )
    grid = tuple(sorted(temperatures))
    names = [rule_at(value) for value in grid]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The temperature of the rule {name} is named twice: name each once.")
    if len(grid) < 2:
        raise UsageError("A sweep needs two or more temperatures, e.g. --temperatures 0,0.5,1.")
    return grid
