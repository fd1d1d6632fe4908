"""`gapfloor floor`: measure the random floor of games on both level sets."""

from __future__ import annotations

from typing import Any

import click

from gapfloor.cli.options import (
    json_option,
    parse_engine_options,
    parse_integers,
    print_json,
    protocol_options,
    reference_option,
    store_option,
    workers_option,
)
from gapfloor.cli.progress import LiveProgress
from gapfloor.cli.tables import print_table


@click.command()
@click.argument("games", nargs=-1, required=True, metavar="GAME...")
@protocol_options
@reference_option(default=("uniform",))
@workers_option
@store_option
@json_option
def command(
    games: tuple[str, ...],
    options: tuple[str, ...],
    draws: str,
    references: tuple[str, ...],
    store: str,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Measure the random floor of GAMEs (`paper`: the paper's eight, `all`: all sixteen) on both level sets.

    \b
    Examples:
      gapfloor floor starpilot
      gapfloor floor paper --json
      gapfloor floor coinrun --mode hard --option use_backgrounds=false
      gapfloor floor heist --design census --repeats 4
      gapfloor floor starpilot --reference uniform --reference best-constant --reference sticky:0.9
    """
    from gapfloor.analysis.known_floors import known_floor
    from gapfloor.api.floor import measure_floor

    with LiveProgress(quiet=as_json) as progress:
        measured = measure_floor(
            games,
            options=parse_engine_options(options),
            draws=parse_integers(draws, what="draws"),
            reference=references,
            store=store,
            progress=progress,
            **settings,
        )
    drawn = "" if settings["design"] == "census" else f"; draws {draws}"
    if as_json:
        print_json(measured.to_dict())
        return
    headings, rows = measured.table()
    beside = [known_floor(row) for row in measured.floors] if not options else [None] * len(rows)
    if any(beside):
        headings = [*headings, "shipped", "paper"]
        rows = [
            [*row, *(known.columns() if known else ["", ""])] for row, known in zip(rows, beside, strict=True)
        ]
    print_table(headings, rows)
    engines = dict.fromkeys(f"{row.engine} {row.engine_version}" for row in measured.floors)
    click.echo(
        f"Measured now or read from {store}; engine: {', '.join(engines)}; design: {measured.design}{drawn}."
    )
    for row in measured.floors:
        if row.levels == "all":
            click.echo(
                "The level set 'all' is the whole distribution: no other level set is disjoint from it."
            )
            break
    for name in measured.damaged:
        click.echo(f"The cell {name} was cut or altered and has been measured again.")
