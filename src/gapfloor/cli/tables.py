"""Results on the terminal: their tables, then what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json

if TYPE_CHECKING:
    from gapfloor.tables.table import Table
    from gapfloor.text_tables import ReadableResult


def print_result(
    result: ReadableResult, *, files: Sequence[Path] = (), as_json: bool, wide: bool = False
) -> None:
    """A result as a person reads it, and the files that were written; or its JSON document."""
    if as_json:
        print_json(result.to_dict())
        return
    from gapfloor.tables.terminal import clean_lines
    from gapfloor.text_tables import as_table

    for number, table in enumerate(result.tables()):
        if number:
            click.echo()
        show_table(as_table(table), wide=wide)
    for line in (*result.sentences(), *result.notes):
        click.echo(clean_lines(line))
    if files:
        click.echo(f"written to {files[0].parent}: {', '.join(path.name for path in files)}")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of plain texts."""
    from gapfloor.text_tables import as_table

    show_table(as_table((list(headings), [list(row) for row in rows])))


def show_table(table: Table, *, wide: bool = False) -> None:
    """Print a table; where it is wider than the terminal, its rows are printed as blocks."""
    from gapfloor.tables.terminal import terminal_width, to_terminal

    click.echo(to_terminal(table, terminal_width(), wide=wide))
