"""`gapfloor study`: run, inspect, estimate or clean up a whole study."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gapfloor.cli.options import json_option, print_json
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.text_tables import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gapfloor.study.executors import Ending, Executor
    from gapfloor.study.graph import Task
    from gapfloor.study.model import Study

_FILE = click.argument("file", type=click.Path(path_type=Path), metavar="STUDY.toml")
_STORE = click.option(
    "--store", "--out", "store", default=None, envvar="GAPFLOOR_STORE",
    help="Folder of the study's store (default: the study's name).",
)  # fmt: skip


@click.group()
def command() -> None:
    r"""Run a whole study from one file: train, calibrate, evaluate, analyse and report.

    \b
    Examples:
      gapfloor study preview studies/paper-8m.toml
      gapfloor study run studies/demo.toml --store demo-store
      gapfloor study run studies/paper-8m.toml --ray auto --store /shared/paper-8m
    """


@command.command()
@_FILE
@_STORE
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=None,
    help="Number of worker processes (default: one per core).",
)
@click.option("--ray", default=None, metavar="auto|ADDRESS", help="Run on a Ray cluster instead.")
@click.option(
    "--slurm",
    default=None,
    metavar="NAME=VALUE,...",
    help="Submit each task as a SLURM job with these settings, e.g. partition=cpu,timeout_min=240.",
)
@json_option
def run(
    file: Path, store: str | None, workers: int | None, ray: str | None, slurm: str | None, as_json: bool
) -> None:
    """Do what is missing in a study; run the same command again to resume."""
    from gapfloor.machine import available_cores
    from gapfloor.play.stored_backend import backend_for
    from gapfloor.policies.backends import usual_backend
    from gapfloor.records.store import Store
    from gapfloor.study.executors import LocalExecutor, RayExecutor, StudyAssignment
    from gapfloor.study.model import read_study
    from gapfloor.study.runner import run_study
    from gapfloor.study.shared import SharedStore

    if ray is not None and slurm is not None:
        raise UsageError("--ray and --slurm exclude each other: name the one that this cluster has.")
    study = read_study(file)
    place = store or study.name
    if SharedStore(place).is_remote:
        raise UsageError(
            f"{place} is an address, and a study runs in a folder: mount it where all machines can see it."
        )
    root = Path(place).resolve()
    opened = Store(root)
    opened.prepare()
    opened.write_order(games=study.games, agents=study.agents)
    backend = backend_for(opened, study.evaluation.backend) or usual_backend("cpu")
    assignment = StudyAssignment(study, str(file.resolve().parent), str(root), backend)

    def make_executor() -> Executor:
        if ray is not None:
            return RayExecutor(assignment, address=ray, capacity=workers)
        if slurm is not None:
            from gapfloor.integrations.slurm import SlurmExecutor

            return SlurmExecutor(assignment, settings=slurm, capacity=workers)
        return LocalExecutor(assignment, workers=workers or available_cores())

    listener = _Lines(study, quiet=as_json)
    outcome = run_study(
        study, home=file.resolve().parent, root=root, make_executor=make_executor, listener=listener
    )
    if as_json:
        print_json({"done": outcome.done, "failed": outcome.failed, "blocked": outcome.blocked})
    elif not outcome.failed:
        click.echo(
            f"{study.name}: all {len(outcome.done)} tasks are done. The page is {root / 'report' / 'index.html'}."
        )
    if outcome.failed:
        first = next(iter(outcome.failed))
        raise CheckFailedError(
            f"{counted(len(outcome.failed), 'task')} failed and {len(outcome.blocked)} depend on them. First: {first}: "
            f"{outcome.failed[first]} Logs are in {root / 'log' / 'tasks'}; run the same command to try again."
        )


@command.command()
@_FILE
@_STORE
@json_option
def status(file: Path, store: str | None, as_json: bool) -> None:
    """Show what is done, running, failed and missing."""
    from gapfloor.study.finished import Survey
    from gapfloor.study.graph import build_graph
    from gapfloor.study.journal import TaskJournal
    from gapfloor.study.model import read_study

    study = read_study(file)
    root = Path(store or study.name)
    survey = Survey(study, home=file.resolve().parent, root=root)
    journal = TaskJournal(root)
    running, failures = journal.running(), journal.failures()
    states: dict[str, Counter[str]] = {}
    listed: dict[str, list[str]] = {"running": [], "failed": []}
    for task in build_graph(study):
        state = "missing"
        if task.name in running:
            state = "running"
        elif survey.is_done(task):
            state = "done"
        elif task.name in failures:
            state = "failed"
        states.setdefault(task.kind, Counter())[state] += 1
        if state in listed:
            listed[state].append(task.name)
    if as_json:
        print_json({"study": study.name, "tasks": states, **listed, "damaged": survey.damaged})
        return
    from gapfloor.cli.tables import print_table

    columns = ("done", "running", "failed", "missing")
    print_table(
        ["task", *columns], [[kind, *(str(counts[c]) for c in columns)] for kind, counts in states.items()]
    )
    for name in listed["running"]:
        click.echo(f"running: {name}")
    for name in listed["failed"]:
        click.echo(f"failed: {name}: {failures[name].error} (log: {failures[name].log})")
    for name in survey.damaged:
        click.echo(f"damaged, will be measured again: {name}")


@command.command()
@_FILE
@_STORE
@click.option("--workers", type=click.IntRange(min=1), default=None, help="Cores for the time estimate.")
@json_option
def preview(file: Path, store: str | None, workers: int | None, as_json: bool) -> None:
    """Show what would run, about how long it would take and how much disk it would need."""
    from gapfloor.machine import available_cores
    from gapfloor.study.costs import estimate
    from gapfloor.study.finished import check_runs
    from gapfloor.study.model import read_study

    study = read_study(file)
    check_runs(study, Path(store or study.name))
    size = estimate(study)
    cores = workers or available_cores()
    hours = size.total_core_seconds / 3600
    if as_json:
        print_json(
            {
                "study": study.name, "runs": size.n_runs, "cells": size.n_cells,
                "addendum_cells": size.n_addendum_cells, "floor_cells": size.n_floor_cells,
                "core_seconds": size.core_seconds, "disk_bytes": size.disk_bytes,
            }
        )  # fmt: skip
        return
    click.echo(f"{study.name}: {study.description}" if study.description else study.name)
    click.echo(f"{counted(size.n_runs, 'run')}, {counted(size.n_cells, 'cell')}")
    if size.n_addendum_cells:
        click.echo(f"addendum ({', '.join(study.addendum.rules)}): {counted(size.n_addendum_cells, 'cell')}")
    click.echo(f"floors ({', '.join(study.references)}): {counted(size.n_floor_cells, 'cell')}")
    for kind, seconds in size.core_seconds.items():
        click.echo(f"  {kind:10} {_duration(seconds):>12} of one core")
    click.echo(
        f"about {_duration(hours * 3600 / cores)} on {counted(cores, 'core')}, "
        f"{size.disk_bytes / 2**20:,.0f} MB of disk"
    )


@command.command()
@_FILE
@_STORE
@click.option("--yes", is_flag=True, help="Delete the files; without this option they are only listed.")
def clean(file: Path, store: str | None, yes: bool) -> None:
    """Delete what a finished study no longer needs: resume states, leftovers and notes about failures."""
    import shutil

    from gapfloor.records.atomic import remove_leftovers
    from gapfloor.study.finished import Survey
    from gapfloor.study.graph import build_graph
    from gapfloor.study.model import read_study

    study = read_study(file)
    root = Path(store or study.name)
    survey = Survey(study, home=file.resolve().parent, root=root)
    trained = [task.run for task in build_graph(study) if task.kind == "train" and survey.is_done(task)]
    folders = [root / "runs" / run / "resume" for run in trained]
    found = [folder for folder in [*folders, root / "log" / "tasks"] if folder.is_dir()]
    size = sum(path.stat().st_size for folder in found for path in folder.rglob("*") if path.is_file())
    if yes:
        for folder in found:
            shutil.rmtree(folder)
        remove_leftovers(root)
    click.echo(
        f"{'Deleted' if yes else 'Would delete'} {counted(len(found), 'folder')}, {size / 2**20:,.1f} MB."
    )
    if not yes and found:
        click.echo("Add --yes to delete them; runs, cells, results and the report stay.")


class _Lines:
    """Prints one line per task that ends, with the time left."""

    def __init__(self, study: Study, *, quiet: bool) -> None:
        self._study, self._quiet = study, quiet
        self._started = time.monotonic()

    def start(self, todo: Sequence[Task], done: Sequence[Task]) -> None:
        from gapfloor.study.costs import task_seconds

        self._cost = {task.name: task_seconds(self._study, task) for task in todo}
        self._left, self._total = sum(self._cost.values()), sum(self._cost.values())
        self._count, self._n = 0, len(todo)
        self._say(f"{counted(len(done), 'task')} done, {len(todo)} to do.")

    def begun(self, task: Task) -> None:
        pass

    def ended(self, ending: Ending, *, again: bool) -> None:
        if ending.error:
            then = "it will be tried again" if again else "given up; the other tasks continue"
            self._say(f"failed: {ending.task.name}: {ending.error} ({then})")
            if again:
                return
        self._count += 1
        self._left -= self._cost[ending.task.name]
        spent = time.monotonic() - self._started
        passed = self._total - self._left
        left = (
            f", about {_duration(spent * self._left / passed)} left" if passed > 0 and self._left > 1 else ""
        )
        if not ending.error:
            self._say(f"[{self._count}/{self._n}, {_duration(spent)}{left}] {ending.task.name}")

    def _say(self, text: str) -> None:
        if not self._quiet:
            click.echo(text, err=True)


def _duration(seconds: float) -> str:
    """A duration in its two largest units."""
    whole = round(seconds)
    parts: list[Any] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if whole >= size or (name == "s" and not parts):
            parts.append(f"{whole // size} {name}")
            whole %= size
    return " ".join(parts[:2])
