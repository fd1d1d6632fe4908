"""Gap and distance from the floor over a run's training: every kept checkpoint, measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.training_curves import (
    PlayedCheckpoint,
    TrainingCurve,
    TrainingCurves,
    analyse_curve,
)
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.machine import one_blas_thread
from gapfloor.play.campaign import GameCells
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import PlaySettings, make_protocol
from gapfloor.play.samples import read_sample
from gapfloor.play.workers import Progress
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules
from gapfloor.training.history import History, read_history


@one_blas_thread()
@takes(PlaySettings)
def training_curve(
    runs: str | Path | Sequence[str | Path],
    *,
    rules: str | Sequence[str] = "sampled,greedy",
    workers: int | None = None,
    progress: Progress | bool | None = None,
    store: str | Path | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> TrainingCurves:
    """Measure gap and floor at every kept checkpoint of runs, with the training log next to them.

    A gap depends on the checkpoint that is reported. For each one the result has the gap and the held-out return above
    the floor, and the training log's running mean next to the fixed checkpoint's return on the same training levels.
    Mode and training levels must be those of the runs. Intermediate checkpoints are filed under the
    budget BUDGET@STEPS, the last under the run's own.

    Args:
        runs: Folders of runs that were trained with checkpoint_every.
        rules: How actions are chosen: sampled, greedy, merged, epsilon:E, temperature:T.
        workers: Number of worker processes (default: one per core).
        progress: What hears of episodes and cells. None: a bar on a terminal, a line in a notebook; False: nothing.
        store: Folder that keeps the cells; what it holds is not played again.
        out: Folder for training-curve.json and the figure (default: results/training-curve of the store).
        **settings: The fields of `PlaySettings`.

    Returns:
        A curve per run; `plot()` draws them.

    Command line:
        gapfloor train starpilot --encoder impala --seed 1 --steps 100000 --checkpoint-every 4
        gapfloor training-curve gapfloor-store/runs/starpilot-easy-impala-100k-s1 --draws 0 --episodes 64

    Examples:
        >>> import gapfloor, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = gapfloor.train(
        ...     "maze", steps=1024, envs=2, checkpoint_every=1, store=folder, tensorboard=False, progress=False
        ... )
        >>> curves = gapfloor.training_curve(
        ...     run.checkpoint.parent, rules="sampled", draws=0, episodes=16, progress=False
        ... )
        >>> [row.at for row in curves.curves[0].gaps]
        [512, 1024]
    """
    folders = [runs] if isinstance(runs, (str, Path)) else list(runs)
    if not folders:
        raise UsageError("No run is named: give the folder of one, e.g. gapfloor-store/runs/NAME.")
    asked = read_settings(PlaySettings, settings)
    histories = [read_history(folder) for folder in folders]
    for history in histories:
        _check(history, asked)
    names = [history.name for history in histories]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The run {name} is named twice: name each once.")
    entrants: dict[str, list[Entrant]] = {}
    for history in histories:
        entrants.setdefault(str(history.header["game"]), []).extend(
            Entrant(kept.path, budget=kept.label) for kept in history.kept
        )
    with open_store(store) as opened:
        campaign = play_policies(
            entrants,
            rules=parse_rules(rules),
            protocol=make_protocol(list(entrants), asked),
            store=opened,
            workers=workers,
            progress=progress,
            **asked.inference,
        )
        games = dict(zip(entrants, campaign.games, strict=True))
        first = dict.fromkeys(games, 0)
        curves = []
        for history in histories:
            game = str(history.header["game"])
            curves.append(_curve(history, opened, games[game], first[game]))
            first[game] += len(history.kept)
    notes = [*campaign.notes, *(note for history in histories for note in history.notes)]
    result = TrainingCurves(tuple(curves), str(campaign.protocol.design), tuple(notes))
    folder = out if out is not None else curve_folder(store) if store is not None else None
    if folder is not None:
        from gapfloor.report.result_files import write_training_curves

        write_training_curves(result, Path(folder))
    return result


def curve_folder(store: str | Path) -> Path:
    """Where a store keeps the files of training curves."""
    return Store(store).root / "results" / "training-curve"


def _check(history: History, asked: PlaySettings) -> None:
    """The in-loop mean is of the run's own game, mode and training levels: the checkpoints must be measured there."""
    header = history.header
    mode = asked.mode or "easy"
    if mode != header["mode"]:
        raise UsageError(
            f"{history.name} was trained in the mode {header['mode']}, not {mode}: measure it in that mode."
        )
    for name, levels in (("train", asked.train), ("test", asked.test)):
        if levels == "none":
            raise UsageError(f"Gap and delta need both level sets, but {name} is none.")
    if str(LevelSet.parse(asked.train)) != str(header["levels"]):
        raise UsageError(
            f"{history.name} was trained on the levels {header['levels']}, not {asked.train}: use "
            f"{header['levels']} as train."
        )


def _curve(history: History, store: Store, game: GameCells, first: int) -> TrainingCurve:
    checkpoints = []
    for kept, group in zip(history.kept, game.runs[first:], strict=False):
        rules = dict.fromkeys(cell.rule for cell in group.cells)
        samples = {
            (rule, level_set): read_sample(store, group.cells, level_set=level_set, rule=rule)
            for rule in rules
            for level_set in ("train", "test")
        }
        run = RunIdentity.from_labels(group.cells[0].labels)
        checkpoints.append(PlayedCheckpoint(run, kept.steps, samples))
    return analyse_curve(
        checkpoints,
        {level_set: read_sample(store, game.floor, level_set=level_set) for level_set in ("train", "test")},
        history.log,
        name=history.name,
    )
