r"""One description of a table, and its writers for files: LaTeX (booktabs), Markdown and CSV.

A table is columns, rows and lines between them. A column describes a quantity once, for every writer (terminal, HTML,
LaTeX, Markdown, CSV, records) and for the documentation: `data/columns.toml` has them all, read by `tables.registry`.
The columns make the cells of a row object; a layout that needs its own cells (the paper's: blank repeated names,
several rows of an analysis in one line) gives them instead. The LaTeX is the paper's layout; Markdown and CSV have the
same rows, CSV unrounded and with one column per number. `Missing` stands in where the data lack what a table needs, and
says what.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.escape import escape_csv, escape_markdown, escape_tex, guard_row
from gapfloor.tables.cells import Cell, Raw, empty_cell, missing_cell, text_cell

Align = Literal["l", "r", "c"]
#: Stands for an entry that a table leaves blank on purpose.
BLANK = object()


@dataclass(frozen=True)
class Column:
    """A column of a table. One that depends on a rule or a cut is made by a function that returns a column.

    >>> from gapfloor.tables.cells import mean_sem
    >>> def mean_return(rule):
    ...     return Column(
    ...         f"{rule}_return", "Return", f"Mean return under {rule}.", lambda row: mean_sem(*row[rule]),
    ...         align="r", csv=(rule, f"{rule}_sem"),
    ...     )
    >>> mean_return("greedy").entry({"greedy": (7.25, 0.5)}).plain
    '7.25 ± 0.50'
    """

    key: str
    """Its name in a registry."""
    title: str
    """The words above it."""
    meaning: str
    """What it is, in one sentence; the documentation of columns prints it."""
    cell: Callable[[Any], Cell]
    """How its value is printed, made with the formatters of `tables.cells`."""
    align: Align = "l"
    tex: str | None = None
    """LaTeX of the title where escaping is not enough."""
    csv: tuple[str, ...] = ()
    """Names of the raw values of a cell in CSV, JSON, Arrow and pandas; by default the key alone."""
    is_wide: bool = False
    """Whether a terminal shows it only with `--wide`."""
    value: Callable[[Any, Any], Any] = lambda row, use: row
    """What it takes from a row, given `use`; None where there is nothing, `BLANK` where nothing is to be printed."""
    use: Any = None
    """What the table uses it for, e.g. a rule."""

    def __post_init__(self) -> None:
        if not self.csv:
            object.__setattr__(self, "csv", (self.key,))

    @property
    def header(self) -> Cell:
        """The title in both spellings."""
        return text_cell(self.title, tex=self.tex)

    def entry(self, row: Any) -> Cell:
        """The entry for a row."""
        found = self.value(row, self.use)
        if found is None or found is BLANK:
            return (missing_cell if found is None else empty_cell)(len(self.csv))
        return self.cell(found)


@dataclass(frozen=True)
class ColumnGroup:
    """A header that spans columns `first` to `last` (from 0, inclusive)."""

    title: Cell
    first: int
    last: int


@dataclass(frozen=True)
class RuleLine:
    """A line between rows: "midrule", or "addlinespace" for a little air."""

    kind: Literal["midrule", "addlinespace"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A whole table."""

    name: str
    """File stem and the part of the label after `tab:`."""
    title: str = ""
    """A short heading for the page and the terminal."""
    caption: Cell = text_cell("")  # noqa: RUF009 - it is frozen
    columns: tuple[Column, ...]
    rows: tuple[Any, ...]
    """Row objects, tuples of prepared cells, and `RuleLine`s. Once the table is made, every row is a tuple of cells."""
    groups: tuple[ColumnGroup, ...] = ()
    notes: tuple[str, ...] = ()
    """What the data lacked, and what was left out for it."""
    size: Literal["normalsize", "small", "footnotesize", "scriptsize", "tiny"] = "small"
    separation: str = "3.5pt"
    status: str = ""
    """"exploratory" where the table must say so."""
    is_wide: bool = False
    """Whether the float may have to be shrunk to fit a line."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self._cells(row) for row in self.rows))
        for row in self.rows:
            if isinstance(row, RuleLine):
                continue
            assert len(row) == len(self.columns), (self.name, len(row), len(self.columns))
            for cell, column in zip(row, self.columns, strict=True):
                assert len(cell.raw) == len(column.csv), (self.name, column.csv, cell)

    def _cells(self, row: Any) -> tuple[Cell, ...] | RuleLine:
        if isinstance(row, RuleLine) or (
            isinstance(row, tuple) and all(isinstance(cell, Cell) for cell in row)
        ):
            return row
        return tuple(column.entry(row) for column in self.columns)

    @property
    def body(self) -> list[tuple[Cell, ...]]:
        """The rows without rules."""
        return [row for row in self.rows if not isinstance(row, RuleLine)]

    @property
    def csv_names(self) -> list[str]:
        """The names of the raw values of a row, in order."""
        return [name for column in self.columns for name in column.csv]

    @property
    def spans(self) -> list[tuple[Cell | None, int]]:
        """The headings of groups in order, each with its number of columns; None above columns without a group."""
        found: list[tuple[Cell | None, int]] = []
        at = 0
        for group in sorted(self.groups, key=lambda group: group.first):
            found += [(None, group.first - at), (group.title, group.last - group.first + 1)]
            at = group.last + 1
        return [(title, n) for title, n in (*found, (None, len(self.columns) - at)) if n]

    def shown(self, *, wide: bool) -> list[int]:
        """The positions of the columns that a person sees: those that are always shown, or all of them."""
        return [at for at, column in enumerate(self.columns) if wide or not column.is_wide]


@dataclass(frozen=True)
class Missing:
    """A table that could not be made, and why."""

    name: str
    title: str
    why: str


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


def flat_headers(table: Table) -> list[str]:
    """One header per column, with the name of its group in front."""
    headers = [column.header.plain for column in table.columns]
    for group in table.groups:
        for at in range(group.first, group.last + 1):
            headers[at] = f"{group.title.plain}: {headers[at]}"
    return headers


def _csv_value(value: Raw) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    # Only text can be a formula: a negative number stays a number.
    return (
        repr(value)
        if isinstance(value, float)
        else (escape_csv(value) if isinstance(value, str) else str(value))
    )
