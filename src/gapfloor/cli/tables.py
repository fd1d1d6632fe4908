"""Results on the terminal: their tables, then what they say."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gapfloor.cli.options import print_json
from gapfloor.cli.say import say

if TYPE_CHECKING:
    from gapfloor.tables.readable import ReadableResult
    from gapfloor.tables.table import Table


def print_result(
    result: ReadableResult, *, files: Sequence[Path] = (), as_json: bool, wide: bool = False
) -> None:
    """A result as a person reads it, and the files that were written; or its JSON document."""
    if as_json:
        print_json(result.to_dict())
        return
    from gapfloor.tables.readable import ReportResult

    if isinstance(result, ReportResult):
        say(str(result).rstrip("\n"))
        return
    tables, lines = result.tables(), (*result.sentences(), *result.notes)
    for number, table in enumerate(tables):
        if number:
            say()
        show_table(table, wide=wide)
    if len(tables) > 1 and lines:
        say()
    for line in lines:
        show_lines(line)
    if files:
        say(f"written to {files[0].parent}: {', '.join(path.name for path in files)}")


def show_lines(text: str) -> None:
    """Print sentences; a line that is wider than the terminal is continued below, with no number split."""
    from gapfloor.tables.terminal import clean_lines, terminal_width, wrapped

    for line in clean_lines(text).split("\n"):
        for part in wrapped(line, terminal_width()):
            say(part)


def show_next(*words: str) -> None:
    """Print the next useful command, as it is typed."""
    say(f"Next: {shlex.join(words)}")


def show_table(table: Table, *, wide: bool = False) -> None:
    """Print a table; where it is wider than the terminal, its rows are printed as blocks."""
    from gapfloor.tables.terminal import terminal_width, to_terminal

    say(to_terminal(table, terminal_width(), wide=wide))
