"""The tasks of a study in an order in which they can be done."""

from __future__ import annotations

from gapfloor.play.candidate import Entrant
from gapfloor.study.model import Study
from gapfloor.study.tasks import (
    AnalyseTask,
    CalibrateTask,
    CellTask,
    CkaTask,
    EvaluateTask,
    FloorTask,
    ReplayTask,
    ReportTask,
    Task,
    TrainTask,
)


def build_graph(study: Study) -> list[Task]:
    """All tasks of a study, each after those it needs. Games follow each other, so that the first is complete early."""
    tasks = [task for game in study.games for task in _tasks_of_game(study, game)]
    measured = tuple(task.name for task in tasks if isinstance(task, CellTask))
    shown = tuple(task.name for task in tasks if isinstance(task, ReplayTask | CkaTask))
    tasks.append(AnalyseTask(name="analyse", needs=measured))
    tasks.append(ReportTask(name="report", needs=("analyse", *shown)))
    return tasks


def _tasks_of_game(study: Study, game: str) -> list[Task]:
    tasks: list[Task] = []
    classes: tuple[str, ...] = ()
    if study.needs_classes:
        classes = (f"calibrate {game}",)
        tasks.append(CalibrateTask(name=classes[0], game=game))
    tasks += [
        FloorTask(name=f"floor {game} {reference}", game=game, reference=reference)
        for reference in study.references_of(game)
    ]
    trained = [
        TrainTask(name=f"train {spec.run}", spec=spec, checkpoints=group.checkpoints)
        for group, spec in study.training_specs()
        if spec.game == game
    ]
    tasks += trained
    runs: list[tuple[str, Entrant | None, tuple[str, ...]]] = [
        (task.spec.run, None, (task.name,)) for task in trained
    ]
    runs += [(run, entrant, ()) for run, entrant in study.given_runs(game)]
    tasks += [
        EvaluateTask(
            name=f"evaluate {run} {rule} {role}",
            needs=(*needs, *classes),
            game=game,
            run=run,
            entrant=entrant,
            rule=rule,
            level_set=role,
        )
        for run, entrant, needs in runs
        for rule in (*study.evaluation.rules, *study.addendum.rules)
        for role, _ in study.protocol(game).level_sets
    ]
    if study.replays:
        measured = tuple(task.name for task in tasks if isinstance(task, CellTask))
        tasks.append(ReplayTask(name=f"replay {game}", needs=measured, game=game))
    if study.cka and trained:
        names = tuple(task.spec.run for task in trained)
        tasks.append(
            CkaTask(name=f"cka {game}", needs=tuple(task.name for task in trained), game=game, runs=names)
        )
    return tasks
