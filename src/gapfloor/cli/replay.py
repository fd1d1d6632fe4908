"""`gapfloor replay`: play recorded episodes again and keep their frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gapfloor.cli.options import allow_option, json_option, print_json
from gapfloor.text_tables import counted


@click.command()
@click.argument("store", type=click.Path())
@click.option("--game", "games", multiple=True, help="A game of the store; may be repeated (default: all).")
@click.option(
    "--level-set",
    type=click.Choice(["train", "test"]),
    default="test",
    show_default=True,
    help="Which levels.",
)
@click.option("--agent", default=None, help="The agent whose episodes are replayed (default: the first).")
@click.option("--seed", type=int, default=None, help="The seed of its run (default: the first).")
@click.option(
    "--level", type=int, default=None, help="The level (default: where sampled and greedy differ most)."
)
@click.option(
    "--count", type=click.IntRange(min=1), default=2, show_default=True, help="Number of levels per game."
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Policy of a run that is not in the store, e.g. sb3:ppo-1.zip; may be repeated.",
)
@allow_option
@json_option
def command(store: str, as_json: bool, **settings: Any) -> None:
    r"""Play recorded episodes of STORE again, under every rule and the floor, and keep their frames in it.

    The return of every replay must equal the recorded one. The page of `gapfloor report` shows the frames.

    \b
    Examples:
      gapfloor replay gapfloor-store --game starpilot
      gapfloor replay gapfloor-store --game miner --level 1017 --agent impala --seed 2
    """
    from gapfloor.api.replay import replay

    replays = replay(store, **settings)
    if as_json:
        print_json({"replays": [str(path.relative_to(store)) for path in replays.paths]})
        return
    click.echo(replays)
    click.echo(f"{counted(len(replays.paths), 'replay')} in {Path(store) / 'replays'}.")
