"""One checkpoint at a grid of temperatures between greedy and sampled, on the same levels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.checkpoints import Played, Sweep, analyse_sweep, rule_at
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.api.plot import with_files
from gapfloor.api.policy_campaign import CampaignSettings, play_policies
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.play.campaign import Campaign, read_sample
from gapfloor.play.candidate import Entrant
from gapfloor.records.atomic import check_folder
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store, open_store
from gapfloor.rules import parse_rules

TEMPERATURES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


@one_blas_thread()
@takes(CampaignSettings)
def sweep(
    policy: Any,
    *,
    game: str,
    temperatures: Sequence[float] = TEMPERATURES,
    agent: str | None = None,
    budget: str | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Sweep:
    """Play one policy at a grid of temperatures between greedy and sampled, on the same levels as the floor.

    Every point is an ordinary cell of the store, shared with `evaluate`: temperature 0 is stored as greedy, 1 as
    sampled. The result has return, gap and the entropy of the distribution that was drawn from.

    Args:
        policy: A policy in any form that `evaluate` takes.
        game: The game to play.
        temperatures: The grid: 0 is the rule greedy, 1 the rule sampled.
        agent: Name of the agent (default: from the checkpoint).
        budget: Label of the training budget, e.g. 8M (default: from the checkpoint).
        seed: Seed of the policy (default: from the checkpoint).
        out: Folder for sweep.json and the figure (default: results/sweep of the store).
        **settings: The fields of `CampaignSettings`.

    Returns:
        Rows against the floor, gaps and the trend over temperature; `plot()` draws them.

    Command line:
        gapfloor sweep gapfloor-store/runs/starpilot-easy-impala-8M-s1 --game starpilot
        gapfloor sweep mypackage.agents:load --game heist --temperatures 0,0.5,1 --draws 0 --episodes 64

    Examples:
        A policy that prefers one action of maze a little:

        >>> import gapfloor
        >>> import numpy as np
        >>> def right(frames):
        ...     return np.where(np.arange(15) == 7, 2.0, 0.0) * np.ones((len(frames), 1))
        >>> found = gapfloor.sweep(
        ...     right, game="maze", temperatures=[0, 1], draws=0, episodes=16, agent="right", progress=False
        ... )
        >>> [round(row.entropy_played, 2) for row in found.floor_comparisons if row.level_set == "test"]
        [0.0, 2.37]
    """
    check_folder(out)
    grid = check_temperatures(temperatures)
    asked = read_settings(CampaignSettings, settings)
    with open_store(asked.store) as opened:
        campaign = play_policies(
            {game: [Entrant(policy, agent, budget, seed)]},
            rules=parse_rules([rule_at(value) for value in grid]),
            asked=asked,
            store=opened,
        )
        result = _analyse(campaign, grid)
    if out is None and asked.store is not None:
        out = Store(asked.store).root / "results" / "sweep" / result.run.name.replace("/", "_")
    return with_files(result, out)


def _analyse(campaign: Campaign, grid: tuple[float, ...]) -> Sweep:
    (game,) = campaign.games
    store, cells = campaign.store, game.runs[0].cells
    level_sets = [role for role, _ in campaign.protocol.level_sets]
    run = RunIdentity.from_labels(cells[0].labels)
    return analyse_sweep(
        [
            Played(
                run,
                rule_at(value),
                value,
                {role: read_sample(store, cells, level_set=role, rule=rule_at(value)) for role in level_sets},
            )
            for value in grid
        ],
        {role: read_sample(store, game.floor, level_set=role) for role in level_sets},
        design=str(campaign.protocol.design),
        draws=campaign.protocol.draws,
        notes=campaign.notes,
    )


def check_temperatures(temperatures: Sequence[float]) -> tuple[float, ...]:
    """The grid from cold to hot; fewer than two, and negative or infinite values are refused."""
    for value in temperatures:
        if not 0 <= value < float("inf"):
            raise UsageError(
                f"The temperature {value:g} is out of range: use 0 (greedy) or more; 1 is sampled."
            )
    if len(temperatures) < 2:
        raise UsageError("A sweep needs two or more temperatures, e.g. 0, 0.5 and 1.")
    return tuple(sorted(temperatures))
