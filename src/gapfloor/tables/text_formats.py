r"""Tables as files: LaTeX (booktabs), Markdown and CSV.

The LaTeX is the paper's layout; Markdown and CSV have the same rows, CSV unrounded and with one column per number.
"""

from __future__ import annotations

import csv
import io
import math

from gapfloor.escape import escape_csv, escape_markdown, escape_tex, guard_row
from gapfloor.tables.cells import Raw
from gapfloor.tables.table import RuleLine, Table, flat_headers


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
