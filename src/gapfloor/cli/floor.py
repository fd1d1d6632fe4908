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
from gapfloor.cli.pictures import read_fewer_pictures
from gapfloor.cli.tables import print_result, show_table
from gapfloor.errors import UsageError


@click.command()
@click.argument("games", nargs=-1, metavar="GAME...")
@click.option(
    "--known", is_flag=True,
    help="List floors that come with gapfloor, without playing: all, or those of the named environments or families.",
)  # fmt: skip
@protocol_options
@reference_option(default=("uniform",))
@workers_option
@store_option
@json_option
def command(
    games: tuple[str, ...],
    known: bool,
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
      gapfloor floor envpool:Pong-v5 --design census --train none --test 1000:1020
      gapfloor floor --known mujoco
    """
    if known:
        _list_known(games, as_json=as_json)
    else:
        if not games:
            raise UsageError(
                "No game is named: give one or more, e.g. starpilot, or --known to list known floors."
            )
        _measure(games, references, store=store, as_json=as_json, **settings)


def _list_known(names: tuple[str, ...], *, as_json: bool) -> None:
    """Entries of the shipped registry by environment or family; all of them where none is named."""
    from gapfloor.analysis.registry_entries import FloorRegistry
    from gapfloor.api.known_floor import known_floor, known_floors

    found = list(known_floors().entries) if not names else []
    for name in names:
        is_game = any(entry.game == name for entry in known_floors().entries) or ":" in name
        found += [known_floor(name)] if is_game else known_floors(name).entries
    print_result(found[0] if len(found) == 1 and names else FloorRegistry(tuple(found)), as_json=as_json)


def _measure(
    games: tuple[str, ...], references: tuple[str, ...], *, store: str, as_json: bool, **settings: Any
) -> None:
    from gapfloor.analysis.result_tables import floor_table
    from gapfloor.api.floor import measure_floor

    read_fewer_pictures(references=references)
    with LiveProgress(quiet=as_json) as progress:
        measured = measure_floor(games, reference=references, store=store, progress=progress, **settings)
    if as_json:
        print_json(measured.to_dict())
        return
    show_table(floor_table(measured.floors, known=not settings["options"]))
    engines = dict.fromkeys(row.engine for row in measured.floors)
    is_drawn = settings["design"] == "draws"
    drawn = f"; draws {','.join(map(str, settings['draws']))}" if is_drawn else ""
    click.echo(
        f"Measured now or read from {store}; engine: {', '.join(engines)}; design: {measured.design}{drawn}."
    )
    for line in measured.sentences():
        click.echo(line)
