"""Tables as HTML, for the page of a report and for notebooks. All text is escaped."""

from __future__ import annotations

import functools
import html
from collections.abc import Sequence

from gapfloor.escape import clean_text
from gapfloor.tables.cells import Cell
from gapfloor.tables.table import Align, Table, flat_headers

_STYLES: dict[Align, str] = {
    "l": "",
    "r": ' style="text-align: right"',
    "c": ' style="text-align: center"',
}


def to_html(table: Table, *, wide: bool = False) -> str:
    """A whole table that needs no style sheet, as notebooks show it."""
    at, titles = table.shown(wide=wide), flat_headers(table)

    def line(tag: str, texts: Sequence[str]) -> str:
        styles = (_STYLES[table.columns[index].align] for index in at)
        cells = (f"<{tag}{css}>{escaped(text)}</{tag}>" for css, text in zip(styles, texts, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    head = line("th", [titles[index] for index in at])
    body = "".join(line("td", [shown(row[index]) for index in at]) for row in table.body)
    caption = f"<caption>{escaped(table.title)}</caption>" if table.title else ""
    notes = "".join(f"<p>{escaped(note)}</p>" for note in table.notes)
    return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>{notes}"


def html_head(table: Table) -> str:
    """The head for a page that sorts columns: the headings that span several, and a button per column."""
    groups = "".join(
        f'<td colspan="{n}"></td>'
        if title is None
        else f'<th colspan="{n}" scope="colgroup" class="spanner">{escaped(title.plain)}</th>'
        for title, n in table.spans
    )
    heads = "".join(
        f'<th scope="col" class="{column.align}" aria-sort="none"><button type="button">'
        f"{escaped(column.title)}</button></th>"
        for column in table.columns
    )
    return (f'<tr class="groups">{groups}</tr>' if table.groups else "") + f"<tr>{heads}</tr>"


def html_rows(table: Table) -> str:
    """The rows for a page that has a style sheet and sorts columns: classes, and the value to sort by."""
    lines = []
    for row in table.body:
        cells = []
        for cell, column in zip(row, table.columns, strict=True):
            text = shown(cell)
            tone = f" {cell.sort}" if cell.sort in ("above", "below") else ""
            css = column.align + (" long" if len(text) > 60 else "") + tone
            cells.append(f'<td class="{css}" data-sort="{escaped(sort_key(cell))}">{escaped(text)}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return "".join(lines)


def shown(cell: Cell) -> str:
    """The text of a cell. Sorting must not lose a name that a layout shows once, so it is repeated."""
    return cell.plain if cell.plain or not isinstance(cell.sort, str) else cell.sort


def sort_key(cell: Cell) -> str:
    """The first raw value as text; empty where there is none."""
    value = cell.sort
    return "" if value is None else (repr(value) if isinstance(value, float) else str(value))


@functools.lru_cache(maxsize=1 << 14)  # a large page repeats a few texts many thousand times
def escaped(text: str) -> str:
    """`text` as HTML, without characters that have no glyph."""
    return html.escape(clean_text(text))
