"""`gapfloor power`: how many runs and floor episodes a call needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json
from gapfloor.cli.table_options import table_options
from gapfloor.errors import UsageError

if TYPE_CHECKING:
    from gapfloor.analysis.table_options import TableOptions


@click.command(name="power")
@click.argument("pilot", type=click.Path(path_type=Path), required=False)
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    help="Take alpha, the method and the primary rule from this plan.  [default: the recommended calls]",
)
@click.option("--rule", help="Rule of the pilot's comparisons.  [default: the plan's primary rule]")
@click.option("--level-set", default="test", show_default=True, help="Level set of the pilot's comparisons.")
@click.option("--delta", type=float, help="Without a pilot: the difference to the floor worth finding.")
@click.option("--sem", type=float, help="Without a pilot: the SEM over the runs of --runs.")
@click.option(
    "--runs", type=click.IntRange(min=2), help="Without a pilot: the number of runs that --sem is for."
)
@click.option(
    "--floor-sem",
    type=float,
    help="Without a pilot: the floor's SEM.  [default: half of the standard deviation between runs]",
)
@click.option(
    "--floor-episodes",
    type=click.IntRange(min=2),
    help="Without a pilot: the number of episodes that --floor-sem is for.  [default: 384]",
)
@click.option(
    "--family",
    type=click.IntRange(min=1),
    help="Number of games in the family.  [default: those of the pilot, or 1]",
)
@click.option("--power", "wanted", type=float, default=0.8, show_default=True, help="The power to reach.")
@click.option("--alpha", type=float, default=None, help="Level of the call.  [default: the plan's, or 0.05]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options(with_rule=False)
def command(
    pilot: Path | None,
    plan: Path | None,
    rule: str | None,
    level_set: str,
    delta: float | None,
    sem: float | None,
    runs: int | None,
    floor_sem: float | None,
    floor_episodes: int | None,
    family: int | None,
    wanted: float,
    alpha: float | None,
    as_json: bool,
    table: TableOptions,
) -> None:
    r"""Compute how many runs and floor episodes a call needs for a given power after Holm.

    From a PILOT (a store or an episode file), or from --delta, --sem and --runs. Runs and floor episodes are searched
    together: one run is saved for at most 1,000 more floor episodes.

    \b
    Examples:
      gapfloor power gapfloor-store
      gapfloor power --delta 0.88 --sem 0.29 --runs 6 --floor-sem 0.24 --family 8
    """
    from gapfloor.analysis.episodes import read_inputs
    from gapfloor.api.power import power

    numbers = (delta, sem, runs, floor_sem, floor_episodes)
    if pilot is not None and any(value is not None for value in numbers):
        raise UsageError("Give a pilot, or --delta, --sem and --runs, not both.")
    advice = power(
        None if pilot is None else read_inputs(pilot, options=table),
        delta=delta,
        sem=sem,
        runs=runs,
        floor_sem=floor_sem,
        floor_episodes=floor_episodes,
        plan=plan,
        rule=rule,
        level_set=level_set,
        family=family,
        wanted=wanted,
        alpha=alpha,
    )
    if as_json:
        print_json(advice.to_dict())
        return
    for line in advice.sentences():
        click.echo(line)
