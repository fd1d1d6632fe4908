"""`gapfloor study`: run, inspect or estimate a whole study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import StoreFolder, print_json
from gapfloor.cli.tables import print_result
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.text_tables import counted

if TYPE_CHECKING:
    from gapfloor.study.executors import Executor, StudyAssignment

_FILE = click.argument("file", type=click.Path(path_type=Path), metavar="STUDY.toml")
_STORE = click.option(
    "--store", default=None, envvar="GAPFLOOR_STORE", type=StoreFolder(),
    help="Folder of the study's store (default: the study's name).",
)  # fmt: skip
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


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
@click.option(
    "--without-authentication", is_flag=True,
    help="Use a Ray cluster that asks for no token: everyone who can reach it can run code with your rights.",
)  # fmt: skip
@_JSON
def run(
    file: Path,
    store: str | None,
    workers: int | None,
    ray: str | None,
    slurm: str | None,
    without_authentication: bool,
    as_json: bool,
) -> None:
    """Do what is missing in a study; run the same command again to resume."""
    from gapfloor.records.store import Store
    from gapfloor.study.awaited import awaited_sentence
    from gapfloor.study.journal import TaskJournal
    from gapfloor.study.model import Study

    if ray is not None and slurm is not None:
        raise UsageError("--ray and --slurm exclude each other: name the one that this cluster has.")

    def submit(assignment: StudyAssignment) -> Executor:
        from gapfloor.integrations.slurm import SlurmExecutor

        return SlurmExecutor(assignment, settings=str(slurm), capacity=workers)

    study = Study.read(file)
    executor = submit if slurm is not None else None
    root = Store(store or study.name).root.resolve()
    for other in TaskJournal(root).coordinators():
        click.echo(
            f"Another study run works on this store: {other.words}. Both can continue; some tasks may be done twice.",
            err=True,
        )
    outcome = study.run(
        store=store, workers=workers, ray=ray, must_authenticate=not without_authentication, executor=executor,
        progress=not as_json,
    )  # fmt: skip
    if as_json:
        print_json(outcome.to_dict())
    elif not outcome.failed and not outcome.absent:
        click.echo(
            f"{study.name}: all {len(outcome.done)} tasks are done. The page is {root / 'report' / 'index.html'}."
        )
    if outcome.failed:
        first = next(iter(outcome.failed))
        raise CheckFailedError(
            f"{counted(len(outcome.failed), 'task')} failed and {len(outcome.blocked)} depend on them. First: {first}: "
            f"{outcome.failed[first]} Logs are in {root / 'log' / 'tasks'}; run the same command to try again."
        )
    if outcome.absent:
        raise CheckFailedError(
            f"{study.name}: {counted(len(outcome.done), 'task')} done. {awaited_sentence(study, outcome.absent)} "
            f"{counted(len(outcome.waiting), 'task')} (the analysis and the report among them) need these agents: add "
            f"them and run the same command again. For a look at what is there: gapfloor report {root}"
        )


@command.command()
@_FILE
@_STORE
@_JSON
def status(file: Path, store: str | None, as_json: bool) -> None:
    """Show what is done, running, failed and missing."""
    from gapfloor.study.model import Study

    print_result(Study.read(file).status(store=store), as_json=as_json)


@command.command()
@_FILE
@_STORE
@click.option("--workers", type=click.IntRange(min=1), default=None, help="Cores for the time estimate.")
@_JSON
def preview(file: Path, store: str | None, workers: int | None, as_json: bool) -> None:
    """Show what would run, about how long it would take and how much disk it would need."""
    from gapfloor.study.model import Study

    print_result(Study.read(file).preview(store=store, workers=workers), as_json=as_json)
