"""The tasks of a study in an order in which they can be done, and what all of them will cost.

Tasks estimate their seconds from the rates of one machine; another one is faster or slower, but the proportions are
similar.
"""

from __future__ import annotations

from dataclasses import dataclass

from gapfloor.play.candidate import Entrant
from gapfloor.study.model import Study
from gapfloor.study.tasks import (
    CalibrateTask,
    CellTask,
    CkaTask,
    EvaluateTask,
    FloorTask,
    ReplayTask,
    ReportTask,
    Task,
    TrainTask,
    rates,
)


def build_graph(study: Study) -> list[Task]:
    """All tasks of a study, each after those it needs. Games follow each other, so that the first is complete early."""
    tasks = [task for game in study.games for task in _tasks_of_game(study, game)]
    shown = tuple(task.name for task in tasks if isinstance(task, CellTask | ReplayTask | CkaTask))
    return [*tasks, ReportTask(name="report", needs=shown)]


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
        *((task.spec.run, None, (task.name,)) for task in trained),
        *((run, entrant, ()) for run, entrant in study.given_runs(game)),
    ]
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


@dataclass(frozen=True)
class CostEstimate:
    """A study's size."""

    n_runs: int
    n_cells: int
    n_addendum_cells: int
    n_floor_cells: int
    core_seconds: dict[str, float]
    """By kind of task."""
    longest_chain: float
    """Core seconds of the tasks that must follow each other, from the longest run to the report."""
    disk_bytes: int

    def seconds_on(self, cores: int) -> float:
        """The least time on this many cores: a task uses one of them, so the longest chain is a lower limit."""
        return max(sum(self.core_seconds.values()) / cores, self.longest_chain)


def estimate(study: Study) -> CostEstimate:
    """The size of `study`, done or not."""
    tasks = build_graph(study)
    seconds: dict[str, float] = {}
    ends: dict[str, float] = {}
    for task in tasks:
        own = task.seconds(study)
        seconds[task.kind] = seconds.get(task.kind, 0.0) + own
        ends[task.name] = own + max((ends[name] for name in task.needs), default=0.0)
    evaluations = [task for task in tasks if isinstance(task, EvaluateTask)]
    n_cells = sum(task.cells(study).total() for task in evaluations if task.rule in study.evaluation.rules)
    n_addendum = sum(task.cells(study).total() for task in evaluations if task.rule in study.addendum.rules)
    floors = [task for task in tasks if isinstance(task, FloorTask)]
    n_floors = sum(task.cells(study).total() + task.n_trials(study) for task in floors)
    runs = [task for task in tasks if isinstance(task, TrainTask)]
    sizes = rates()["bytes"]
    disk = (
        (n_cells + n_addendum + n_floors) * sizes["cell"]
        + len(runs) * sizes["checkpoint"]
        + sum(not run.checkpoints for run in runs) * sizes["resume"]
    )
    return CostEstimate(len(runs), n_cells, n_addendum, n_floors, seconds, max(ends.values()), int(disk))
