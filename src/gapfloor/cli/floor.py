"""`gapfloor floor`: measure the random floor of games on both level sets."""

from __future__ import annotations

from typing import Any

import click

from gapfloor.api.progress import LiveProgress
from gapfloor.cli.options import (
    json_option,
    print_json,
    protocol_options,
    reference_option,
    store_option,
    workers_option,
)
from gapfloor.cli.tables import print_table


@click.command()
@click.argument("games", nargs=-1, required=True, metavar="GAME...")
@protocol_options
@reference_option(default=("uniform",))
@workers_option
@store_option
@json_option
def command(
    games: tuple[str, ...], references: tuple[str, ...], store: str, as_json: bool, **settings: Any
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
        measured = measure_floor(games, reference=references, store=store, progress=progress, **settings)
    if as_json:
        print_json(measured.to_dict())
        return
    headings, rows = measured.table()
    known = [None if settings["options"] else known_floor(row) for row in measured.floors]
    if any(known):
        headings = [*headings, "shipped", "paper"]
        rows = [[*row, *(it.columns() if it else ["", ""])] for row, it in zip(rows, known, strict=True)]
    print_table(headings, rows)
    engines = dict.fromkeys(f"{row.engine} {row.engine_version}" for row in measured.floors)
    is_drawn = settings["design"] == "draws"
    drawn = f"; draws {','.join(map(str, settings['draws']))}" if is_drawn else ""
    click.echo(
        f"Measured now or read from {store}; engine: {', '.join(engines)}; design: {measured.design}{drawn}."
    )
    for line in measured.sentences():
        click.echo(line)
