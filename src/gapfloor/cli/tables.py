"""Tables on the terminal: coloured where there is one, plain text where there is not."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json

if TYPE_CHECKING:
    from gapfloor.text_tables import ReadableResult


def print_result(result: ReadableResult, *, files: Sequence[Path] = (), as_json: bool) -> None:
    """A result as a person reads it, and the files that were written; or its JSON document."""
    if as_json:
        print_json(result.to_dict())
        return
    for number, table in enumerate(result.tables()):
        if number:
            click.echo()
        print_table(*table)
    for line in (*result.sentences(), *result.notes):
        click.echo(line)
    if files:
        click.echo(f"written to {files[0].parent}: {', '.join(path.name for path in files)}")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; numbers are aligned to the right."""
    if not sys.stdout.isatty():
        from gapfloor.text_tables import text_table

        click.echo(text_table(headings, rows))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings, box=None, header_style="bold")
    for column in table.columns:
        cells = [row[list(headings).index(str(column.header))] for row in rows]
        if all(_is_number(cell) for cell in cells if cell):
            column.justify = "right"
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _is_number(text: str) -> bool:
    try:
        float(text.split("±")[0])
    except ValueError:
        return False
    return True
