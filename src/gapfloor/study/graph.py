"""The task graph of a study: train, floor, calibrate, evaluate, replay, cka, analyse, report.

A task names what it does; whether it is done is read from the store, so the graph has no state of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gapfloor.study.model import Study

Kind = Literal["train", "floor", "calibrate", "evaluate", "replay", "cka", "analyse", "report"]


@dataclass(frozen=True)
class Task:
    """One idempotent piece of work; its name is unique in the study."""

    kind: Kind
    name: str
    game: str = ""
    run: str = ""
    rule: str = ""
    level_set: str = ""
    reference: str = ""
    needs: tuple[str, ...] = ()
    """Names of the tasks that must be done first."""


def build_graph(study: Study) -> list[Task]:
    """All tasks of a study, each after those it needs. Games follow each other, so that the first is complete early."""
    tasks = [task for game in study.games for task in _tasks_of_game(study, game)]
    measured = tuple(task.name for task in tasks if task.kind in ("floor", "evaluate"))
    shown = tuple(task.name for task in tasks if task.kind in ("replay", "cka"))
    tasks.append(Task("analyse", "analyse", needs=measured))
    tasks.append(Task("report", "report", needs=("analyse", *shown)))
    return tasks


def _tasks_of_game(study: Study, game: str) -> list[Task]:
    tasks: list[Task] = []
    if study.needs_classes:
        tasks.append(Task("calibrate", f"calibrate {game}", game))
    for reference in study.references_of(game):
        tasks.append(Task("floor", f"floor {game} {reference}", game, reference=reference))
    runs = [spec.run for _, spec in study.training_specs() if spec.game == game]
    trained = [Task("train", f"train {run}", game, run) for run in runs]
    tasks += trained
    for run in runs:
        tasks += _evaluations(study, game, run)
    if study.replays:
        measured = tuple(task.name for task in tasks if task.kind in ("floor", "evaluate"))
        tasks.append(Task("replay", f"replay {game}", game, needs=measured))
    if study.cka:
        tasks.append(Task("cka", f"cka {game}", game, needs=tuple(task.name for task in trained)))
    return tasks


def _evaluations(study: Study, game: str, run: str) -> list[Task]:
    classes = (f"calibrate {game}",) if study.needs_classes else ()
    level_sets = [role for role, levels in (("train", study.train), ("test", study.test)) if levels != "none"]
    return [
        Task(
            "evaluate",
            f"evaluate {run} {rule} {role}",
            game,
            run,
            rule,
            role,
            needs=(f"train {run}", *classes),
        )
        for rule in (*study.evaluation.rules, *study.addendum.rules)
        for role in level_sets
    ]
