"""What each task of a study does, in whatever process it runs.

Every task is idempotent and writes whole files with bytes that depend on the study alone, so it does not matter
where it runs, how often it is started, or what else runs at the same time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import StoreError
from gapfloor.play.campaign import Request, plan_campaign
from gapfloor.play.candidate import Entrant
from gapfloor.play.cell import CellSpec
from gapfloor.play.references import relative_to_file
from gapfloor.play.stored_backend import backend_for
from gapfloor.play.workers import CellWorkers, Silence
from gapfloor.records.atomic import write_atomically, write_text_atomically
from gapfloor.records.store import Store
from gapfloor.rules import parse_rules
from gapfloor.study.digest import inputs_digest
from gapfloor.study.graph import Task
from gapfloor.study.model import Study

Beat = Callable[[], None]


def perform(
    task: Task,
    study: Study,
    *,
    home: Path,
    root: Path,
    beat: Beat = lambda: None,
    backend: str | None = None,
) -> None:
    """Do `task` in the store at `root`; `home` is the study file's folder. `beat` is called while it runs.

    `backend` computes the networks' logits; None: the study's own, that of the store, or the usual one.
    """
    backend = backend or study.evaluation.backend
    store = Store(root)
    if task.kind == "train":
        _train(task, study, home, store, beat)
    elif task.kind == "calibrate":
        from gapfloor.calibration import classes_for

        classes_for(root, study.protocol(task.game).engines[0])
    elif task.kind == "floor":
        _floor(task, study, home, store, beat, backend)
    elif task.kind == "evaluate":
        _evaluate(task, study, store, beat, backend)
    elif task.kind == "replay":
        _replay(task, study, store)
    elif task.kind == "cka":
        _cka(task, study, store)
    elif task.kind == "analyse":
        _analyse(study, home, store)
    else:
        _report(study, home, store)


def _train(task: Task, study: Study, home: Path, store: Store, beat: Beat) -> None:
    group, spec = next(pair for pair in study.training_specs() if pair[1].run == task.run)
    if group.checkpoints:
        source = home / group.checkpoints / spec.run
        if not (source / "checkpoint.safetensors").is_file():
            raise StoreError(f"The checkpoint of {spec.run} is missing from {group.checkpoints}: restore it.")
        # The log first: the checkpoint is what says that the run is there.
        for name in ("log.parquet", "checkpoint.safetensors"):
            if (source / name).is_file():
                _copy(source / name, store.root / "runs" / spec.run / name)
        return
    from gapfloor.training.trainer import train

    train(spec, store=store.root, threads=1, observe=lambda tick: beat(), with_tensorboard=False)


def _copy(source: Path, target: Path) -> None:
    def write(partial: Path) -> None:
        shutil.copyfile(source, partial)

    write_atomically(target, write)


def _floor(task: Task, study: Study, home: Path, store: Store, beat: Beat, backend: str | None) -> None:
    protocol = study.protocol(task.game)
    request = Request(
        engine=protocol.engines[0],
        protocol=protocol,
        references=(relative_to_file(task.reference, home, game=task.game),),
        batch=study.evaluation.batch,
        backend=backend_for(store, backend),
    )
    plan_campaign([request], store, is_prepared=True).play(CellWorkers(1, _Heartbeat(beat)))


def _evaluate(task: Task, study: Study, store: Store, beat: Beat, backend: str | None) -> None:
    protocol = study.protocol(task.game)
    play_policies(
        {task.game: [Entrant(str(store.root / "runs" / task.run))]},
        rules=parse_rules(task.rule),
        protocol=replace(
            protocol, level_sets=tuple(p for p in protocol.level_sets if p[0] == task.level_set)
        ),
        store=store,
        references=(),
        probe=study.evaluation.probe,
        batch=study.evaluation.batch,
        backend=backend,
        workers=1,
        progress=_Heartbeat(beat),
        is_prepared=True,
    )


class _Heartbeat(Silence):
    """Shows with every episode that the task is alive."""

    def __init__(self, beat: Beat) -> None:
        self._beat = beat

    def episode(self, cell: CellSpec, episode_return: float) -> None:
        self._beat()


def _replay(task: Task, study: Study, store: Store) -> None:
    from gapfloor.api.replay import replay
    from gapfloor.play.replay import code_names

    # The study file names the environment, so its code is the user's own.
    allowed = code_names(study.protocol(task.game).engines[0])
    level_set = "test" if study.test != "none" else "train"
    replay(store.root, games=(task.game,), count=study.replays, level_set=level_set, allow=allowed)


def _cka(task: Task, study: Study, store: Store) -> None:
    from gapfloor.levels import LevelSet
    from gapfloor.representation import CkaSettings, measure_cka

    runs = [store.root / "runs" / spec.run for _, spec in study.training_specs() if spec.game == task.game]
    draws = study.protocol(task.game).draws
    measure_cka(runs, CkaSettings(test=LevelSet.parse(study.test), draw=draws[0]), store=store.root)


def _plan(study: Study, home: Path) -> Path | None:
    return home / study.plan if study.plan else None


def _analyse(study: Study, home: Path, store: Store) -> None:
    from gapfloor.analysis import analyse
    from gapfloor.analysis.episodes import read_inputs
    from gapfloor.analysis.stored_results import results_digest, write_stored_results

    digest = inputs_digest(study, home, store, "analyse")
    inputs, plan = read_inputs(store.root), _plan(study, home)
    results = analyse(inputs, plan=plan)
    write_stored_results(results, store.root, digest=results_digest(inputs, plan))
    text = json.dumps(results.to_dict(), sort_keys=True, indent=1, allow_nan=False) + "\n"
    write_text_atomically(store.root / "results" / "analysis.json", text)
    write_text_atomically(store.root / "results" / "analysis.inputs", digest + "\n")


def _report(study: Study, home: Path, store: Store) -> None:
    from gapfloor.report import load_report_source, write_report
    from gapfloor.report.write import FORMATS

    digest = inputs_digest(study, home, store, "report")
    source = load_report_source(store.root, plan=_plan(study, home))
    # Named after the study, not the folder: the same study gives the same page wherever it lies.
    write_report(
        replace(source, name=study.name),
        store.root / "report",
        formats=FORMATS if study.formats is None else study.formats,
        tables=study.tables or (),
    )
    write_text_atomically(store.root / "results" / "report.inputs", digest + "\n")
