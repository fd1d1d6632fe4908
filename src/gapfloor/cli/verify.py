"""`gapfloor verify`: are the cells of a store what was recorded, and do their episodes play that way?"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import click

from gapfloor.cli.options import allow_option, json_option, print_json
from gapfloor.errors import CheckFailedError
from gapfloor.records.verification import DEFAULT_EPISODES
from gapfloor.text_tables import counted


@click.command()
@click.argument("store", type=click.Path())
@click.option(
    "--episodes", type=click.IntRange(min=0), default=DEFAULT_EPISODES, show_default=True,
    help="Number of episodes to play again.",
)  # fmt: skip
@click.option("--seed", type=int, default=None, help="Seed of the sample of episodes (default: a new one).")
@click.option(
    "--policy", "policies", multiple=True,
    help="Checkpoint or factory of a run that is not in the store; may be repeated.",
)  # fmt: skip
@allow_option
@json_option
def command(store: str, as_json: bool, **settings: Any) -> None:
    r"""Check the cells of STORE, and play a random sample of their episodes again.

    Keys, hashes, labels and schedules of all cells are checked. Returns and lengths of the sample must be the recorded
    ones. The card and the page of `gapfloor report` say what was verified. The exit code is 1 if a check fails.

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
    if as_json:
        print_json({"is_sound": found.is_sound, **dataclasses.asdict(found)})
    else:
        click.echo(f"cells      {found.cells:,}: keys, hashes, labels and schedules checked")
        click.echo(
            f"episodes   {found.replayed:,} of {found.episodes:,} played again (sample seed {found.seed})"
        )
        for reason in found.not_replayed:
            click.echo(f"not played again, {reason}")
        for problem in found.problems:
            click.echo(f"problem    {problem}")
    if not found.is_sound:
        raise CheckFailedError(
            f"{store} is not what was recorded: {counted(len(found.problems), 'problem')}. The results of these cells "
            "cannot be trusted."
        )
    if not as_json:
        click.echo(_conclusion(found.replayed, found.replayable, found.noticed_share))


def _conclusion(replayed: int, replayable: int, noticed_share: float) -> str:
    if not replayed:
        return "No problem was found, but nothing was played again: returns that were edited and hashed again pass."
    if replayed == replayable:
        return "No problem was found."
    return (
        f"No problem was found. If {noticed_share:.1%} of the {replayable:,} episodes that can be played here had been "
        "altered, this sample would have shown it with a probability of 0.95."
    )
