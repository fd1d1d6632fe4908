"""`gapfloor card`: what a reader would still miss in a gap card."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from gapfloor.cli.options import print_json
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.text_tables import counted


@click.group("card", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Gap cards: a short statement of what a reported gap rests on (written by gapfloor report)."""


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(["hf"]), required=True, help="hf: a Hugging Face model card."
)
@click.option("--name", required=True, help="Name of the model, e.g. owner/coinrun-impala.")
def export(file: Path, form: str, name: str) -> None:
    """Print the gap card FILE (card.json) as part of another document.

    With --format hf: the README.md of a model repository, with the results as its model index. Example:
    gapfloor card export report/card.json --format hf --name me/coinrun > README.md
    """
    from gapfloor.report.card_check import read_card
    from gapfloor.report.model_card import model_card

    card = read_card(file)
    with _whole(file):
        text = model_card(card, name=name)
    click.echo(text, nl=False)


@command.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def compare(before: Path, after: Path) -> None:
    """Print the numbers of two gap cards (card.json) side by side, in Markdown."""
    from gapfloor.report.card_check import read_card
    from gapfloor.report.card_comparison import compare_cards

    cards = [read_card(file) for file in (before, after)]
    with _whole(f"{before} or {after}"):
        text = compare_cards(*cards)
    click.echo(text, nl=False)


@contextmanager
def _whole(file: Path | str) -> Iterator[None]:
    """A card that lacks what `gapfloor report` always writes is the user's mistake."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"{file} is not a whole gap card ({type(error).__name__}: {error}): gapfloor report writes card.json."
        ) from None


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def check(file: Path, as_json: bool) -> None:
    """Say what a reader of the card FILE (Markdown or JSON) would still be missing."""
    from gapfloor.report.card_check import check_card

    missing = check_card(file)
    if as_json:
        print_json({"complete": not missing, "missing": [asdict(gap) for gap in missing]})
    elif not missing:
        click.echo(
            f"{file}: complete. A reader can tell which policy was measured, where chance lies and what was tested."
        )
    else:
        for gap in missing:
            click.echo(
                f"missing: {gap.field}\n  A reader cannot know {gap.why}.\n  Supplied by: {gap.remedy}."
            )
    if missing:
        raise CheckFailedError(
            f"{file} leaves out {counted(len(missing), 'entry', 'entries')} that a reader needs."
        )
