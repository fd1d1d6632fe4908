"""`gapfloor plan`: write, lock, check, extend or follow an analysis plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gapfloor.cli.table_options import table_options
from gapfloor.cli.tables import print_result
from gapfloor.records.store import DEFAULT_STORE

if TYPE_CHECKING:
    from gapfloor.analysis.table_options import TableOptions


@click.group(name="plan")
def command() -> None:
    r"""Write, lock, check, extend or follow an analysis plan.

    A plan fixes tests, families, margins, cuts, resamples, seeds and stop conditions. Lock it before the data
    are in: the lock records how many cells had been seen.

    \b
    Examples:
      gapfloor plan init plan.toml
      gapfloor plan lock plan.toml --store gapfloor-store
      gapfloor plan check plan.toml
      gapfloor plan next gapfloor-store --plan plan.toml
    """


@command.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("plan.toml"))
@click.option("--addendum", is_flag=True, help="Write the start of an addendum (merged argmax) instead.")
def init(path: Path, addendum: bool) -> None:
    """Write the paper's plan to PATH (plan.toml), ready to be changed."""
    from gapfloor.api.plan_files import plan_init

    plan_init(path, addendum=addendum)
    following = "gapfloor plan addendum PLAN" if addendum else "gapfloor plan lock"
    click.echo(f"Wrote {path}. Change what you need, then: {following} {path}")


def _seen_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option(
            "--cells-seen",
            type=click.IntRange(min=0),
            help="State the number of cells seen, for data that lie elsewhere.",
        ),
        click.option(
            "--episodes", type=click.Path(path_type=Path), help="Count the cells in an episode file instead."
        ),
        click.option(
            "--store",
            type=click.Path(path_type=Path),
            help=f"Count the cells in this store.  [default: {DEFAULT_STORE}, and what lies next to the plan]",
        ),
    ):
        function = option(function)
    return function


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@_seen_options
def lock(path: Path, **seen: Any) -> None:
    """Fix the plan in PATH: its hash, the time, and how many cells have been seen by now."""
    from gapfloor.api.plan_files import plan_lock
    from gapfloor.plan.lock import lock_path

    locked = plan_lock(path, **seen).plan
    click.echo(f"Locked {path} at {locked.locked_at} ({locked.hash[:12]}), in {lock_path(path)}.")
    click.echo(f"{locked.cells_seen} cells seen ({locked.seen_in}): results will be called {locked.status}.")
    for earlier in locked.earlier:
        click.echo(f"Locked before: {earlier}. The new lock says so.")


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(path: Path, as_json: bool) -> None:
    """Say whether the plan in PATH is locked and unchanged; exit 1 if not."""
    from gapfloor.api.plan_files import plan_check

    print_result(plan_check(path), as_json=as_json)


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("addendum", type=click.Path(path_type=Path))
@_seen_options
def addendum(path: Path, addendum: Path, **seen: Any) -> None:
    """Lock an ADDENDUM (a new rule with its own family) to the locked plan in PATH."""
    from gapfloor.api.plan_files import plan_addendum

    locked = plan_addendum(path, addendum, **seen).addenda[-1]
    click.echo(f"Locked addendum '{locked.name}' at {locked.locked_at} ({locked.hash[:12]}).")
    click.echo(
        f"{locked.cells_seen} cells of its rules seen ({locked.seen_in}): results will be called {locked.status}."
    )


@command.command(name="next")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    default=Path("plan.toml"),
    show_default=True,
    help="The plan, with floor.looks.",
)
@click.option("--rule", help="The rule whose calls decide.  [default: the plan's primary rule]")
@click.option("--level-set", default="test", show_default=True, help="The level set whose calls decide.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options(with_rule=False)
def next_(
    source: Path, plan: Path, rule: str | None, level_set: str, as_json: bool, table: TableOptions
) -> None:
    """Say for each game in SOURCE (a store or an episode file) whether to stop or how many more runs to train.

    The plan names the numbers of runs at which the data are looked at. A game is finished when it has been called or
    when its last look has been reached. Runs between two looks wait for the next look, and runs beyond the last look
    are not used.
    """
    from gapfloor.analysis.episodes import read_inputs
    from gapfloor.api.plan_next import plan_next

    found = plan_next(read_inputs(source, options=table), plan, rule=rule, level_set=level_set)
    print_result(found, as_json=as_json)
