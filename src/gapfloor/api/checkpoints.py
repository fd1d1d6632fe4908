"""One policy at a grid of temperatures, and a run at every kept checkpoint of its training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.analysis.checkpoints import (
    Played,
    Sweep,
    TrainingCurves,
    analyse_curve,
    analyse_sweep,
    rule_at,
)
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.api.plot import with_files
from gapfloor.api.policy_campaign import CampaignSettings, play_policies
from gapfloor.engines.registry import game_of_file
from gapfloor.errors import UsageError, refuse_repeats
from gapfloor.levels.schedule import LevelSet
from gapfloor.machine import one_blas_thread
from gapfloor.play.candidate import Entrant
from gapfloor.play.cell import CellSpec
from gapfloor.records.atomic import check_folder
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store, open_store
from gapfloor.records.stored_cell import episode_table
from gapfloor.rules.rule import parse_rules, rule_kind
from gapfloor.training.log import History, read_history

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
    rules = [rule_at(value) for value in grid]
    asked = read_settings(CampaignSettings, settings)
    with open_store(asked.store) as opened:
        campaign = play_policies(
            {game: [Entrant(policy, agent, budget, seed)]},
            rules=parse_rules(rules),
            asked=asked,
            store=opened,
        )
        (found,) = campaign.games
        cells = found.runs[0].cells
        run = RunIdentity.from_labels(cells[0].labels)
        points = [
            Played(run, rule, at, _samples(opened, cells, rule)) for rule, at in zip(rules, grid, strict=True)
        ]
        result = analyse_sweep(
            points,
            _samples(opened, found.floor),
            design=str(campaign.protocol.design),
            draws=campaign.protocol.draws,
            notes=campaign.notes,
        )
    if out is None and asked.store is not None:
        out = Store(asked.store).root / "results" / "sweep" / run.name.replace("/", "_")
    return with_files(result, out)


def _samples(store: Store, cells: Sequence[CellSpec], rule: str | None = None) -> dict[str, EpisodeSample]:
    """The episodes of a run, or of the floor, on each level set that was played."""
    played = dict.fromkeys(cell.level_set for cell in cells)
    return {name: read_sample(store, cells, level_set=name, rule=rule) for name in played}


def read_sample(
    store: Store, cells: Sequence[CellSpec], *, level_set: str, rule: str | None = None
) -> EpisodeSample:
    """The episodes of those of `cells` (one run's, or the floor's) that are on a level set and under a rule."""
    mine = [cell for cell in cells if cell.level_set == level_set and rule in (None, cell.rule)]
    stored = [store.cell(cell.file_name) for cell in mine]
    episodes = episode_table(stored, columns=("episode_return", "level_seed"))
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


@one_blas_thread()
@takes(CampaignSettings)
def training_curve(
    runs: str | Path | Sequence[str | Path],
    *,
    rules: str | Sequence[str] = "sampled,greedy",
    out: str | Path | None = None,
    **settings: Any,
) -> TrainingCurves:
    """Measure gap and floor at every kept checkpoint of runs, with the training log next to them.

    A gap depends on the checkpoint that is reported. For each checkpoint the result has the gap, the
    held-out return above the floor, and the return on the training levels next to the running mean of the training log.
    Mode and training levels are those of the runs. Intermediate checkpoints are stored under the budget BUDGET@STEPS,
    the last under the run's own.

    Args:
        runs: Folders of runs that were trained with checkpoint_every.
        rules: How actions are chosen: sampled, greedy, merged, epsilon:E, temperature:T.
        out: Folder for training-curve.json and the figure (default: results/training-curve of the store).
        **settings: The fields of `CampaignSettings`.

    Returns:
        A curve per run; `plot()` draws them.

    Command line:
        gapfloor train starpilot --encoder impala --seed 1 --steps 100000 --checkpoint-every 4
        gapfloor training-curve gapfloor-store/runs/starpilot-easy-impala-100k-s1 --draws 0 --episodes 64

    Examples:
        >>> import gapfloor, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = gapfloor.train(
        ...     "maze", steps=1024, envs=2, checkpoint_every=1, store=folder, progress=False
        ... )
        >>> curves = gapfloor.training_curve(
        ...     run.checkpoint.parent, rules="sampled", draws=0, episodes=16, progress=False
        ... )
        >>> [row.at for row in curves.curves[0].gaps]
        [512, 1024]
    """
    check_folder(out)
    folders = [runs] if isinstance(runs, (str, Path)) else list(runs)
    if not folders:
        raise UsageError("No run is named: give the folder of one, e.g. gapfloor-store/runs/NAME.")
    histories = [read_history(folder) for folder in folders]
    asked = _as_trained(histories, settings)
    refuse_repeats("run", [history.name for history in histories])
    entrants: dict[str, list[Entrant]] = {}
    for history in histories:
        game = game_of_file(str(history.header["game"]), file=history.name)
        entrants.setdefault(game, []).extend(Entrant(kept.path, budget=kept.label) for kept in history.kept)
    with open_store(asked.store) as opened:
        campaign = play_policies(entrants, rules=parse_rules(rules), asked=asked, store=opened)
        games = dict(zip(entrants, campaign.games, strict=True))
        groups = {game: iter(cells.runs) for game, cells in games.items()}
        curves = []
        for history in histories:
            game = str(history.header["game"])
            played = []
            for kept, group in zip(history.kept, groups[game], strict=False):
                run = RunIdentity.from_labels(group.cells[0].labels)
                for rule in dict.fromkeys(cell.rule for cell in group.cells):
                    played.append(Played(run, rule, kept.steps, _samples(opened, group.cells, rule)))
            floor = _samples(opened, games[game].floor)
            curves.append(analyse_curve(played, floor, history.log, name=history.name))
    notes = [*campaign.notes, *(note for history in histories for note in history.notes)]
    result = TrainingCurves(tuple(curves), str(campaign.protocol.design), tuple(notes))
    if out is None and asked.store is not None:
        out = Store(asked.store).root / "results" / "training-curve"
    return with_files(result, out)


def _as_trained(histories: Sequence[History], settings: Mapping[str, Any]) -> CampaignSettings:
    """The settings, with mode and training levels of the runs: their in-loop means are of these levels."""
    first = histories[0].header
    trained = {"mode": str(first["mode"]), "train": str(first["levels"])}
    asked = read_settings(CampaignSettings, {**trained, **settings})
    if "none" in (asked.train, asked.test):
        raise UsageError("Gap and delta need both level sets, but one of them is none.")
    chosen = {"mode": asked.mode or "easy", "train": str(LevelSet.parse(asked.train))}
    for history in histories:
        own = {"mode": str(history.header["mode"]), "train": str(history.header["levels"])}
        for name, value in chosen.items():
            if own[name] != value:
                where = "in the mode" if name == "mode" else "on the levels"
                raise UsageError(
                    f"{history.name} was trained {where} {own[name]}, not {value}: use {own[name]} as {name}."
                )
    return asked
