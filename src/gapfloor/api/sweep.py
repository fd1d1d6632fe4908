"""One checkpoint at a grid of temperatures between greedy and sampled, on the same levels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from gapfloor.analysis.sweep import Sweep, analyse_sweep, rule_at
from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.play.campaign import Campaign
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import INFERENCE_BATCH, ProtocolSettings, make_protocol
from gapfloor.play.samples import read_sample
from gapfloor.play.workers import Progress
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules

TEMPERATURES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


@one_blas_thread()
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
    progress: Progress | bool | None = None,
    store: str | Path | None = None,
    **protocol: Unpack[ProtocolSettings],
) -> Sweep:
    """Return, gap and entropy of one policy at a grid of temperatures, on the same levels as the floor.

    Every point is an ordinary cell: temperature 0 is filed as `greedy`, 1 as `sampled`.

    Args:
        policy: A policy as `evaluate` takes it.
        game: The game to play.
        temperatures: The grid; logits are divided by each.
        agent: Name of the agent; None: from the checkpoint.
        budget: Label of the training budget; None: from the checkpoint.
        seed: Seed of the policy; None: from the checkpoint.
        batch: Inference batch size. Changing it changes the cell key.
        device: Where networks run: cpu or cuda.
        backend: The library that computes the logits of gapfloor checkpoints: onnxruntime or torch; None: the one that
            filled the store, or the faster one.
        workers: Number of worker processes; None: one per core.
        progress: What hears of episodes and cells. None: a bar on a terminal, a line in a notebook; False: nothing.
        store: The folder that keeps the cells; None: they are forgotten.
        protocol: The settings of `evaluate`: `train`, `test`, `draws`, `episodes`, `mode`, `options`, `slots`,
            `burn_in`, `design`, `repeats`.

    Returns:
        Rows against the floor, gaps and the trend over temperature; `plot()` draws them.

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
