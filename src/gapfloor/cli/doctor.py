"""`gapfloor doctor`: platform, engine, determinism and cloning, and what is missing."""

from __future__ import annotations

import click

from gapfloor.cli.options import json_option, print_json
from gapfloor.errors import CheckFailedError
from gapfloor.text_tables import counted


@click.command()
@click.option(
    "--games",
    default="coinrun,starpilot,dodgeball",
    show_default=True,
    help="Games to check, separated by commas, or all.",
)
@json_option
def command(games: str, as_json: bool) -> None:
    r"""Check this machine: what is installed, and whether the engine behaves as required.

    \b
    Examples:
      gapfloor doctor
      gapfloor doctor --games all
    """
    from gapfloor.api.engines import doctor

    found = doctor(games)
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(repr(found))
    if found.failed:
        raise CheckFailedError(f"{counted(len(found.failed), 'check')} failed: see above.")
