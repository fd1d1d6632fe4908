"""Tables on the terminal: coloured where there is one, plain text where there is not."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; numbers are aligned to the right."""
    if not sys.stdout.isatty():
        from gapfloor.evaluation.results import text_table

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
