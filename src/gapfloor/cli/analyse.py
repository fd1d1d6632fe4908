"""`gapfloor analyse`: apply a plan's tests to a store or to anyone's episode file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json
from gapfloor.cli.table_options import table_options
from gapfloor.cli.tables import show_table

if TYPE_CHECKING:
    from gapfloor.analysis.table_options import TableOptions


@click.command(name="analyse")
@click.argument("source", type=click.Path(path_type=Path), required=False)
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    help="The plan to follow; its lock is read from the same folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write results.json and one CSV file per table to this folder.",
)
@click.option(
    "--sb3",
    multiple=True,
    metavar="LABELS:FILE",
    help="Add a Stable-Baselines3 evaluations.npz or monitor.csv, with its labels: "
    "game=heist,budget=8M,agent=ppo,seed=1,rule=greedy,level_set=test:logs/evaluations.npz",
)
@click.option(
    "--rliable", type=click.Path(path_type=Path), help="Write rliable's score matrices to this .npz file."
)
@table_options()
def command(
    source: Path | None,
    plan: Path | None,
    as_json: bool,
    out: Path | None,
    sb3: tuple[str, ...],
    rliable: Path | None,
    table: TableOptions,
) -> None:
    r"""Apply the plan's tests to SOURCE: a store, or a .csv, .tsv, .parquet, .jsonl or .npz file of episodes.

    A file needs columns for game, agent, seed, rule, level_set and episode_return, under these or common other names
    (env, algo, split, score ...); --columns, --label, --rule and --floor supply what it does not say. level_seed makes
    claims about the generator of levels possible. Rows with the rule "uniform" are the floor. Without --plan the
    paper's plan is used with the recommended calls, and every result is exploratory. --json also has the
    calls of the other method.

    \b
    Examples:
      gapfloor analyse gapfloor-store --plan plan.toml
      gapfloor analyse results.csv --rule greedy --floor random
      gapfloor analyse episodes.parquet --json --out results
    """
    from gapfloor.api.analyse import analyse

    results = analyse(source, plan, sb3=sb3, out=out, rliable=rliable, progress=not as_json, **vars(table))
    size, *problems = results.sentences()
    if as_json:
        print_json(results.to_dict())
    else:
        click.echo(size)
        for made in results.tables():
            click.echo()
            show_table(made)
    for problem in problems:
        click.echo(problem, err=True)
