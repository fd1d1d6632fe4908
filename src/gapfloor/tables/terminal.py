"""Tables as plain text. No number is ever cut: rows that do not fit the width are printed as blocks.

Text is printed literally, whatever it looks like; control characters are replaced by spaces.
"""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence

from gapfloor.escape import clean_text
from gapfloor.tables.cells import Cell
from gapfloor.tables.table import Align, Table, flat_headers

#: What stays on one line: an interval, a value with its error, a word.
_PIECE = re.compile(r"\S*\[[^\[\]A-Za-z]*\]\S*|\S+ ± \S+|\S+")
_GAP = "  "


def to_terminal(table: Table, width: int | None = None, *, wide: bool = False) -> str:
    """The table as text of at most `width` columns (None: any number), with its title above and its notes below."""
    at = table.shown(wide=wide)
    titles = flat_headers(table)
    status = f" ({table.status})" if table.status else ""
    return "\n".join(
        [
            *([clean_text(table.title) + status] if table.title else []),
            grid(
                [titles[index] for index in at],
                [[_text(row[index]) for index in at] for row in table.body],
                [table.columns[index].align for index in at],
                width,
            ),
            *(line for note in table.notes for line in wrapped(f"Note: {clean_text(note)}", width)),
        ]
    )


def terminal_width() -> int | None:
    """The number of columns of the terminal; None where the output goes elsewhere, e.g. into a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def grid(
    titles: Sequence[str], rows: Sequence[Sequence[str]], aligns: Sequence[Align], width: int | None
) -> str:
    """Aligned columns if they fit, otherwise one block per row.

    >>> print(grid(["game", "gap"], [["maze", "1.5"], ["heist", "12.0"]], ["l", "r"], 80))
    game    gap
    -----------
    maze    1.5
    heist  12.0
    >>> print(grid(["game", "gap"], [["maze", "1.50 ± 0.25 [1.01, 2.00]"]], ["l", "r"], 20))
    game  maze
    gap   1.50 ± 0.25
          [1.01, 2.00]
    """
    head, *body = ([clean_text(text) for text in row] for row in (titles, *rows))
    widths = [max(map(display_width, texts)) for texts in zip(head, *body, strict=True)]
    lines = [
        _GAP.join(_padded(*each) for each in zip(row, widths, aligns, strict=True)).rstrip()
        for row in (head, *body)
    ]
    if width is not None and max(map(display_width, lines)) > width and body:
        return "\n\n".join(_block(head, row, width) for row in body)
    return "\n".join([lines[0], "-" * display_width(lines[0]), *lines[1:]])


def wrapped(text: str, width: int | None) -> list[str]:
    """`text` in lines of at most `width` columns, without splitting a word, a number or an interval.

    >>> wrapped("delta +1.20 [0.50, 2.00]", 13)
    ['delta +1.20', '[0.50, 2.00]']
    """
    if width is None or display_width(text) <= width:
        return [text]
    lines: list[str] = []
    for piece in _PIECE.findall(text):
        longer = f"{lines[-1]} {piece}" if lines else piece
        if lines and display_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(piece)
    return lines


def clean_lines(text: str) -> str:
    """`text` with its line breaks and without other control characters."""
    return "\n".join(map(clean_text, text.split("\n")))


def display_width(text: str) -> int:
    """The columns that a terminal needs for `text`: two for a wide character, none for an accent of its own.

    >>> display_width("maze"), display_width("迷路"), display_width("e\u0301")
    (4, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(char) in ("Mn", "Me") else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def _block(titles: Sequence[str], row: Sequence[str], width: int) -> str:
    """One labelled line per column; a value that does not fit next to its label is printed below it."""
    indent = max(map(display_width, titles)) + len(_GAP)
    lines = []
    for title, text in zip(titles, row, strict=True):
        if not text:
            continue
        parts = wrapped(text, max(width - indent, 1))
        if max(map(display_width, parts)) <= width - indent:
            first, *rest = parts
            lines += [_padded(title, indent, "l") + first, *(" " * indent + part for part in rest)]
        else:
            lines += [title, *(_GAP + part for part in wrapped(text, width - len(_GAP)))]
    return "\n".join(lines)


def _padded(text: str, width: int, align: Align) -> str:
    space = width - display_width(text)
    left = {"l": 0, "c": space // 2, "r": space}[align]
    return " " * left + text + " " * (space - left)


def _text(cell: Cell) -> str:
    """A cell as text: names that a layout leaves out are repeated, and numbers can be copied into a program."""
    if any(isinstance(value, int | float) for value in cell.raw):
        return cell.typed
    return cell.plain or (cell.sort if isinstance(cell.sort, str) else "")
