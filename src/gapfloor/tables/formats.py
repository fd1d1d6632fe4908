r"""Tables in the formats of pages and files: HTML, LaTeX (booktabs), Markdown and CSV.

The LaTeX is the paper's layout; Markdown and CSV have the same rows, CSV unrounded and with one column per number.
Text of the data is escaped in all of them.
"""

from __future__ import annotations

import csv
import functools
import html
import io
import math
from collections.abc import Sequence

from gapfloor.escape import clean_text, escape_csv, escape_markdown, escape_tex, guard_row
from gapfloor.tables.cells import Cell, Raw
from gapfloor.tables.table import Align, RuleLine, Table, flat_headers

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


def to_tabular(table: Table) -> str:
    r"""The `tabular` environment alone, to be \input into a float of one's own."""
    lines = [rf"\begin{{tabular}}{{{''.join(column.align for column in table.columns)}}}", r"\toprule"]
    if table.groups:
        titles = (
            " & " * (n - 1) if title is None else rf"\multicolumn{{{n}}}{{c}}{{{title.tex}}}"
            for title, n in table.spans
        )
        ordered = sorted(table.groups, key=lambda group: group.first)
        lines += [
            " & ".join(titles).replace("  ", " ") + r" \\",
            "".join(rf"\cmidrule(lr){{{group.first + 1}-{group.last + 1}}}" for group in ordered),
        ]
    header = " & ".join(column.header.tex for column in table.columns)
    lines += [guard_row(header) + r" \\", r"\midrule"]
    for row in table.rows:
        if isinstance(row, RuleLine):
            lines.append(f"\\{row.kind}")
        else:
            lines.append(guard_row(" & ".join(cell.tex for cell in row)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def to_float(table: Table) -> str:
    """The table as a float with caption, label and notes."""
    caption = table.caption.tex
    if table.status == "exploratory" and not caption.startswith("Exploratory"):
        caption = f"Exploratory: {caption}"
    if table.notes:
        caption += " " + " ".join(escape_tex(note) for note in table.notes)
    body = to_tabular(table)
    if table.is_wide:
        # Shrunk to the line where it is wider, and only there; needs graphicx.
        fit = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
        body = f"{fit}\n{body.rstrip()}%\n}}\n"
    return (
        "\\begin{table}[htbp]\n"
        f"  \\caption{{{caption}}}\n"
        f"  \\label{{tab:{table.name}}}\n"
        "  \\vspace{3pt}\n"
        "  \\centering\n"
        f"  \\{table.size}\n"
        f"  \\setlength{{\\tabcolsep}}{{{table.separation}}}\n"
        f"{body}"
        "\\end{table}\n"
    )


def to_markdown(table: Table) -> str:
    """The table as GitHub-flavoured Markdown with its caption above and its notes below."""
    status = " (exploratory)" if table.status == "exploratory" else ""
    headers = [escape_markdown(header) for header in flat_headers(table)]
    marks = {"l": ":--", "r": "--:", "c": ":-:"}
    lines = [
        f"**{escape_markdown(table.title)}**{status}. {escape_markdown(table.caption.plain)}",
        "",
        f"| {' | '.join(headers)} |",
        f"| {' | '.join(marks[column.align] for column in table.columns)} |",
    ]
    for row in table.body:
        lines.append(f"| {' | '.join(escape_markdown(cell.plain) for cell in row)} |")
    for note in table.notes:
        lines += ["", f"Note: {escape_markdown(note)}"]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """The raw values, unrounded, one number per column; empty where there is no value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([escape_csv(name) for name in table.csv_names])
    for row in table.body:
        writer.writerow([_csv_value(value) for cell in row for value in cell.raw])
    return out.getvalue()


def _csv_value(value: Raw) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    # Only text can be a formula: a negative number stays a number.
    return (
        repr(value)
        if isinstance(value, float)
        else (escape_csv(value) if isinstance(value, str) else str(value))
    )
