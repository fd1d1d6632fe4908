"""Gap and distance from the floor over a run's training: every kept checkpoint, measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.checkpoints import Played, TrainingCurve, TrainingCurves, analyse_curve
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.api.plot import with_files
from gapfloor.api.policy_campaign import CampaignSettings, play_policies
from gapfloor.engines.registry import game_of_file
from gapfloor.errors import UsageError, refuse_repeats
from gapfloor.levels import LevelSet
from gapfloor.machine import one_blas_thread
from gapfloor.play.campaign import read_sample
from gapfloor.play.candidate import Entrant
from gapfloor.play.cell import CellSpec
from gapfloor.play.group import CellGroup
from gapfloor.records.atomic import check_folder
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store, open_store
from gapfloor.rules import parse_rules
from gapfloor.training.history import History, read_history


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
            curves.append(_curve(history, opened, games[game].floor, groups[game]))
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


def _curve(
    history: History, store: Store, floor: Sequence[CellSpec], groups: Iterator[CellGroup]
) -> TrainingCurve:
    """The curve of a run, whose checkpoints are the next of `groups`."""
    checkpoints = []
    for kept, group in zip(history.kept, groups, strict=False):
        run = RunIdentity.from_labels(group.cells[0].labels)
        for rule in dict.fromkeys(cell.rule for cell in group.cells):
            samples = {
                name: read_sample(store, group.cells, level_set=name, rule=rule) for name in ("train", "test")
            }
            checkpoints.append(Played(run, rule, kept.steps, samples))
    return analyse_curve(
        checkpoints,
        {name: read_sample(store, floor, level_set=name) for name in ("train", "test")},
        history.log,
        name=history.name,
    )
