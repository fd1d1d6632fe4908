"""`gapfloor engines`: which engines there are, and whether an environment keeps the contract."""

from __future__ import annotations

import click

from gapfloor.cli.options import json_option, parse_engine_options, print_json
from gapfloor.cli.tables import print_result
from gapfloor.errors import CheckFailedError


@click.group()
def command() -> None:
    """Check an environment against the engine contract, or list the engines."""


@command.command()
@click.argument("game", metavar="GAME")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE",
    help="An option of the environment, e.g. size=8 or wrapper=package.module:Wrapper; may be repeated.",
)  # fmt: skip
@json_option
def check(game: str, options: tuple[str, ...], as_json: bool) -> None:
    r"""Try the engine contract on GAME (gym:ID, envpool:ID or package.module:make) and say which parts hold.

    The exit code is 1 if a part fails that every measurement needs.

    \b
    Examples:
      gapfloor engines check gym:MiniGrid-FourRooms-v0
      gapfloor engines check gym:FrozenLake-v1 --option is_slippery=false
      gapfloor engines check mypackage.envs:make
    """
    from gapfloor.api.engines import engines_check

    contract = engines_check(game, options=parse_engine_options(options))
    if as_json:
        print_json(contract.to_dict())
    else:
        click.echo(repr(contract))
    if contract.failures:
        names = "; ".join(clause.name for clause in contract.failures)
        raise CheckFailedError(
            f"{game} does not keep the engine contract ({names}), so its gaps would not be measurements."
        )


@command.command(name="list")
@json_option
def list_engines(as_json: bool) -> None:
    """List the engines, how their games are named, and whether they are installed here."""
    from gapfloor.api.engines import engines_list

    print_result(engines_list(), as_json=as_json)
