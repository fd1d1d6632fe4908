"""`gapfloor plan`: write, lock, check, extend or follow an analysis plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json
from gapfloor.cli.table_options import table_options
from gapfloor.cli.tables import print_table
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.text_tables import counted, ends_text, p_text, signed

if TYPE_CHECKING:
    from gapfloor.analysis.table_options import TableOptions
    from gapfloor.api.plan_next import GameLook, PlanNext

DEFAULT_STORE = "gapfloor-store"


@click.group(name="plan")
def command() -> None:
    """Write, lock, check, extend or follow an analysis plan.

    A plan fixes tests, families, margins, cuts, resamples, seeds and stop conditions. Lock it before the data
    are in: the lock remembers how many cells had been seen.
    """


@command.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path("plan.toml"))
@click.option("--addendum", is_flag=True, help="Write the start of an addendum (merged argmax) instead.")
def init(path: Path, addendum: bool) -> None:
    """Write the paper's plan to PATH (plan.toml), ready to be changed."""
    from gapfloor.plan.model import builtin_text
    from gapfloor.records.atomic import write_text_atomically

    if path.exists():
        raise UsageError(f"{path} exists already. Choose another name, or change that file.")
    write_text_atomically(path, builtin_text("merged" if addendum else "paper"))
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
def lock(path: Path, store: Path | None, episodes: Path | None, cells_seen: int | None) -> None:
    """Fix the plan in PATH: its hash, the time, and how many cells have been seen by now."""
    from gapfloor.plan.lock import lock_path, lock_plan

    count, where = _count_seen(store, episodes, cells_seen, rules=None, plan=path)
    locked = lock_plan(path, cells_seen=count, seen_in=where).plan
    click.echo(f"Locked {path} at {locked.locked_at} ({locked.hash[:12]}), in {lock_path(path)}.")
    click.echo(f"{count} cells seen ({where}): results will be called {locked.status}.")
    for earlier in locked.earlier:
        click.echo(f"Locked before: {earlier}. The new lock says so.")


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(path: Path, as_json: bool) -> None:
    """Say whether the plan in PATH is locked and unchanged; exit 1 if not."""
    from gapfloor.plan.lock import load_plan

    plan = load_plan(path)
    if plan.lock is None:
        raise CheckFailedError(f"{path} is not locked. Lock it: gapfloor plan lock {path}")
    texts = [plan.lock.plan, *plan.lock.addenda]
    if as_json:
        keys = ("name", "hash", "locked_at", "cells_seen", "seen_in", "status")
        rows = [{key: getattr(text, key) for key in keys} for text in texts]
        print_json({"plan": rows[0], "addenda": rows[1:]})
        return
    for kind, text in zip(["plan", *["addendum"] * len(plan.lock.addenda)], texts, strict=True):
        click.echo(
            f"{kind} '{text.name}': unchanged since {text.locked_at}, {text.hash[:12]}, "
            f"{text.cells_seen} cells seen ({text.seen_in}): {text.status}"
        )
        for earlier in text.earlier:
            click.echo(f"  locked before: {earlier}")


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("addendum", type=click.Path(path_type=Path))
@_seen_options
def addendum(
    path: Path, addendum: Path, store: Path | None, episodes: Path | None, cells_seen: int | None
) -> None:
    """Lock an ADDENDUM (a new rule with its own family) to the locked plan in PATH."""
    from gapfloor.plan.lock import add_addendum
    from gapfloor.plan.model import parse_addendum
    from gapfloor.settings import read_text

    content = parse_addendum(read_text(addendum), source=str(addendum))
    count, where = _count_seen(store, episodes, cells_seen, rules=content.rules, plan=path)
    locked = add_addendum(path, addendum, cells_seen=count, seen_in=where).addenda[-1]
    click.echo(f"Locked addendum '{locked.name}' at {locked.locked_at} ({locked.hash[:12]}).")
    click.echo(f"{count} cells of its rules seen ({where}): results will be called {locked.status}.")


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
    if as_json:
        print_json(found.to_dict())
        return
    _print_next(found)


def _print_next(found: PlanNext) -> None:
    looks = ", ".join(map(str, found.looks))
    click.echo(
        f"Looks at {looks} runs, {found.rule} actions on the {found.level_set} levels, alpha {found.alpha:g} over all "
        f"games and looks: {found.status}{f' ({found.reason})' if found.reason else ''}."
    )
    headings = ["game", "budget", "runs", "look at", "delta [interval]", "adjusted p", "call", "next"]
    print_table(headings, [_next_cells(game) for game in found.games])
    if found.is_finished:
        click.echo("Every game is finished: no more runs.")
        return
    needed = [
        f"{game.game}{f' at {game.budget}' if game.budget else ''} {game.more_runs}"
        for game in found.games
        if game.more_runs
    ]
    click.echo(f"Train {counted(found.more_runs, 'more run')}: {', '.join(needed)}.")


def _next_cells(game: GameLook) -> list[str]:
    has_look = game.runs_used > 0
    return [
        game.game,
        game.budget,
        str(game.runs),
        str(game.runs_used) if has_look else "-",
        f"{signed(game.delta)} {ends_text(game.interval)}" if has_look else "-",
        p_text(game.p),
        f"{game.call} (unreliable: {game.doubt})" if game.doubt else game.call,
        f"continue: {counted(game.more_runs, 'more run')}" if game.more_runs else game.advice,
    ]


def _count_seen(
    store: Path | None,
    episodes: Path | None,
    cells_seen: int | None,
    *,
    rules: tuple[str, ...] | None,
    plan: Path,
) -> tuple[int, str]:
    """How many cells have been seen, and where they were counted."""
    from gapfloor.analysis.seen_data import count_cells, data_next_to

    if sum(value is not None for value in (store, episodes, cells_seen)) > 1:
        raise UsageError("Give one of --store, --episodes and --cells-seen, not several.")
    if episodes is not None:
        return count_cells(episodes, rules=rules), f"counted in {episodes.name}"
    if store is not None and not store.is_dir():
        raise UsageError(f"There is no store at {store}. Check the path, or give --cells-seen 0.")
    folder = store or Path(DEFAULT_STORE)
    if store is not None:
        has_cells = any((folder / "cells").glob("*.json"))
        return (
            (count_cells(folder, rules=rules), f"counted in {folder.name}")
            if has_cells
            else (0, f"no cells in {folder.name}")
        )
    found = data_next_to(plan, folder, rules=rules)
    listed = ", ".join(f"{name} ({counted(n, 'cell')})" for name, n in found.items())
    if cells_seen is not None:
        return cells_seen, "declared" + (f"; next to the plan: {listed}" if listed else "")
    if not found:
        return 0, f"no cells in {folder.name} and no episode file next to the plan"
    # A store and a file may hold the same cells, so they are not added up.
    return max(found.values()), f"counted in {listed}" if len(
        found
    ) > 1 else f"counted in {next(iter(found))}"
