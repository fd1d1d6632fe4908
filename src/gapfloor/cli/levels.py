"""`gapfloor levels`: what level sets have in common, and what that does to a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gapfloor.cli.options import json_option, parse_engine_options
from gapfloor.cli.tables import print_result


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Find held-out levels that are training levels under another number."""


@command.command("check")
@click.argument("games", nargs=-1, required=True, metavar="GAME...")
@click.option("--train", default="0:200", show_default=True, help="Training levels: START:STOP.")
@click.option(
    "--test", default="1000:1100", show_default=True, help="Held-out levels, in the same form as --train."
)
@click.option("--mode", default=None, help="ProcGen's easy (default), hard, extreme or memory.")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE",
    help="An option of an engine other than ProcGen, e.g. size=8; may be repeated.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), default=None,
    help="Write leakage.json and a sheet of pictures per game into this folder.",
)  # fmt: skip
@click.option(
    "--store", type=click.Path(path_type=Path), default=None,
    help="File the result in this store (leakage/), where `levels gap` and `report` find it.",
)  # fmt: skip
@json_option
def check(games: tuple[str, ...], options: tuple[str, ...], as_json: bool, **settings: Any) -> None:
    r"""Find held-out levels of GAMEs (`paper`, `all`, gym:ID, envpool:ID) that equal a training level.

    ProcGen's levels are compared without backgrounds and themes: the first screen, the whole level, and where those
    agree, fixed action sequences. In other engines everything that is seen counts. Pairs are then confirmed or
    refuted by longer random play.

    \b
    Examples:
      gapfloor levels check coinrun --out coinrun-leaks
      gapfloor levels check all --mode hard --json
      gapfloor levels check gym:MiniGrid-FourRooms-v0
    """
    from gapfloor.api.check_levels import check_levels

    def tell(words: str) -> None:
        if not as_json:
            click.echo(f"{words} ...", err=True)

    found = check_levels(games, progress=tell, options=parse_engine_options(options), **settings)
    print_result(found, as_json=as_json)


@command.command("gap")
@click.argument("source", metavar="STORE|EPISODES")
@click.option(
    "--leaks", type=click.Path(path_type=Path), default=None,
    help="A leakage.json, or a folder that holds one.  [default: the store's own leakage/]",
)  # fmt: skip
@json_option
def gap(source: str, leaks: Path | None, as_json: bool) -> None:
    """Compute the gap with and without leaked levels, for runs and for the floor on the same levels."""
    from gapfloor.api.levels_gap import levels_gap

    print_result(levels_gap(source, leaks=leaks), as_json=as_json)
