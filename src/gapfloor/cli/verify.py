"""`gapfloor verify`: are the cells of a store what was recorded, and do their episodes play that way?"""

from __future__ import annotations

import sys
from typing import Any

import click

from gapfloor.cli.options import allow_option, json_option
from gapfloor.cli.tables import print_result
from gapfloor.errors import CheckFailedError
from gapfloor.records.verification import DEFAULT_EPISODES
from gapfloor.text_tables import counted


@click.command()
@click.argument("store", type=click.Path())
@click.option(
    "--episodes", type=click.IntRange(min=0), default=DEFAULT_EPISODES, show_default=True,
    help="Number of episodes to play again.",
)  # fmt: skip
@click.option(
    "--whole-cells", type=click.IntRange(min=0), default=1, show_default=True,
    help="Number of cells to play completely, so that entropies and action counts are computed again.",
)  # fmt: skip
@click.option("--seed", type=int, default=None, help="Seed of the sample (default: a new one).")
@click.option(
    "--policy", "policies", multiple=True,
    help="Policy of a run that is not in the store, e.g. sb3:ppo-1.zip; may be repeated.",
)  # fmt: skip
@allow_option
@json_option
def command(store: str, as_json: bool, **settings: Any) -> None:
    r"""Check the cells of STORE, and play a random sample of their episodes again.

    Keys, hashes, labels and schedules of all cells are checked. Returns and lengths of the sample must be the recorded
    ones. So must the entropies, action counts and disagreement of the cells that are played completely. The card and
    the page of `gapfloor report` say what was verified. The exit code is 1 if a check fails.

    \b
    Examples:
      gapfloor verify gapfloor-store
      gapfloor verify gapfloor-store --episodes 500 --policy sb3:ppo-1.zip
    """
    from gapfloor.api.verify import verify_store

    is_shown = sys.stderr.isatty() and not as_json

    def show(played: int, total: int) -> None:
        if is_shown:
            click.echo(f"\r{played:,} of {total:,} episodes played again", err=True, nl=played == total)

    found = verify_store(store, progress=show, **settings)
    print_result(found, as_json=as_json)
    if not found.is_sound:
        raise CheckFailedError(
            f"{store} is not what was recorded: {counted(len(found.problems), 'problem')}. The results of these cells "
            "cannot be trusted."
        )
