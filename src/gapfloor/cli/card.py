"""`gapfloor card`: check, compare and export gap cards."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from gapfloor.cli.tables import print_result
from gapfloor.errors import CheckFailedError
from gapfloor.text_tables import counted


@click.group("card", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    r"""Check, compare or export gap cards: short statements of what a reported gap rests on.

    `gapfloor report` writes the cards.

    \b
    Examples:
      gapfloor card check gapfloor-report/card.md
      gapfloor card compare base/card.json this/card.json
    """


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--format", type=click.Choice(["hf"]), required=True, help="hf: a Hugging Face model card.")
@click.option("--name", required=True, help="Name of the model, e.g. owner/coinrun-impala.")
def export(file: Path, format: Literal["hf"], name: str) -> None:
    """Print the gap card FILE (card.json) as part of another document.

    With --format hf: the README.md of a model repository, with the results as its model index. Example:
    gapfloor card export report/card.json --format hf --name me/coinrun > README.md
    """
    from gapfloor.api.card import card_export

    click.echo(card_export(file, name=name, format=format), nl=False)


@command.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def compare(before: Path, after: Path) -> None:
    """Print the numbers of two gap cards (card.json) side by side, in Markdown."""
    from gapfloor.api.card import card_compare

    click.echo(card_compare(before, after), nl=False)


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(file: Path, as_json: bool) -> None:
    """Say what a reader of the card FILE (Markdown or JSON) would still be missing."""
    from gapfloor.api.card import card_check

    found = card_check(file)
    print_result(found, as_json=as_json)
    if found.missing:
        raise CheckFailedError(
            f"{file} leaves out {counted(len(found.missing), 'entry', 'entries')} that a reader needs."
        )
