"""Gap and distance from the floor over a run's training: every kept checkpoint, measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from gapfloor.analysis.training_curves import (
    PlayedCheckpoint,
    TrainingCurve,
    TrainingCurves,
    analyse_curve,
)
from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.machine import one_blas_thread
from gapfloor.play.campaign import GameCells
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import INFERENCE_BATCH, ProtocolSettings, make_protocol
from gapfloor.play.samples import read_sample
from gapfloor.play.workers import Progress
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules
from gapfloor.training.history import History, read_history


@one_blas_thread()
def training_curve(
    runs: str | Path | Sequence[str | Path],
    *,
    rules: str | Sequence[str] = "sampled,greedy",
    game: str | None = None,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    backend: str | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = None,
    store: str | Path | None = None,
    **protocol: Unpack[ProtocolSettings],
) -> TrainingCurves:
    """Gap and distance from the floor at every kept checkpoint of runs, with the training log next to them.

    Intermediate checkpoints are filed under the budget `BUDGET@STEPS`, the last under the run's own.

    Args:
        runs: Folders of runs that were trained with `checkpoint_every`.
        rules: Rules, separated by commas or as a list.
        game: Refuse runs of another game; None: accept each run's own.
        batch: Inference batch size. Changing it changes the cell key.
        device: Where networks run: cpu or cuda.
        backend: The library that computes the logits of gapfloor checkpoints: onnxruntime or torch; None: the one that
            filled the store, or the faster one.
        workers: Number of worker processes; None: one per core.
        progress: What hears of episodes and cells. None: a bar on a terminal, a line in a notebook; False: nothing.
        store: The folder that keeps the cells; None: they are forgotten.
        protocol: The settings of `evaluate`: `train`, `test`, `draws`, `episodes`, `mode`, `options`, `slots`,
            `burn_in`, `design`, `repeats`. Mode and training levels must be those of the runs.

    Returns:
        A curve per run; `plot()` draws them.

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
    histories = [read_history(folder) for folder in folders]
    for history in histories:
        _check(history, game, protocol)
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
            protocol=make_protocol(list(entrants), **protocol),
            store=opened,
            batch=batch,
            device=device,
            backend=backend,
            workers=workers,
            progress=progress,
        )
        games = dict(zip(entrants, campaign.games, strict=True))
        first = dict.fromkeys(games, 0)
        curves = []
        for history in histories:
            game = str(history.header["game"])
            curves.append(_curve(history, opened, games[game], first[game]))
            first[game] += len(history.kept)
    notes = [*campaign.notes, *(note for history in histories for note in history.notes)]
    return TrainingCurves(tuple(curves), str(campaign.protocol.design), tuple(notes))


def _check(history: History, game: str | None, protocol: Mapping[str, Any]) -> None:
    """The in-loop mean is of the run's own game, mode and training levels: the checkpoints must be measured there."""
    header = history.header
    if game is not None and game != header["game"]:
        raise UsageError(f"{history.name} was trained on {header['game']}, not on {game}.")
    mode = protocol.get("mode") or "easy"
    if mode != header["mode"]:
        raise UsageError(
            f"{history.name} was trained in the mode {header['mode']}: use --mode {header['mode']}."
        )
    sets = {
        name: protocol.get(name, default) for name, default in (("train", "0:200"), ("test", "1000:1100"))
    }
    for name, text in sets.items():
        if text == "none":
            raise UsageError(f"Gap and delta need both level sets, but --{name} is none.")
    if str(LevelSet.parse(sets["train"])) != str(header["levels"]):
        raise UsageError(
            f"{history.name} was trained on the levels {header['levels']}, not {sets['train']}: use --train "
            f"{header['levels']}."
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
