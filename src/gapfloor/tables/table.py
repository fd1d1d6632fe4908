"""One description of a table, and the registry of columns from which tables are made.

A table is columns, rows and lines between them. A column describes a quantity once, for every writer (terminal, HTML,
LaTeX, Markdown, CSV, records) and for the documentation: `data/columns.toml` has them all. The columns make the cells
of a row object; a layout that needs its own cells (the paper's: blank repeated names, several rows of an analysis in
one line) gives them instead. `Missing` stands in where the data lack what a table needs, and says what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from typing import Any, Literal

from gapfloor.settings import shipped
from gapfloor.tables.cells import Cell, empty_cell, formatted, missing_cell, text_cell

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


def flat_headers(table: Table) -> list[str]:
    """One header per column, with the name of its group in front."""
    headers = [column.title for column in table.columns]
    for group in table.groups:
        for at in range(group.first, group.last + 1):
            headers[at] = f"{group.title.plain}: {headers[at]}"
    return headers


#: Columns by key.
Registry = dict[str, Column]
#: What a column takes from a row of its table, given what the table uses it for.
Source = Callable[[Any, Any], Any]

_WORDS = ("text", "call", "tier")
#: Letters that stand for a quantity, which LaTeX sets in italics.
_QUANTITY = re.compile(r"\b([nzZpkH])\b")


def read_registry(section: str, sources: Mapping[str, Source]) -> dict[str, Registry]:
    """The registries of a section by name.

    Args:
        section: `report`, `results`, or empty for the registries of rows.
        sources: what the names of `of` stand for.
    """
    document = shipped("data/columns.toml")
    found = document.get(section, {}) if section else document
    return {
        name: {key: _column(key, entry, sources) for key, entry in entries.items()}
        for name, entries in found.items()
        if section or name not in ("report", "results")
    }


def table_of(
    name: str, rows: Iterable[Any], *, title: str = "", heads: Mapping[str, str] | None = None
) -> Table:
    """The table of a result, with the columns of `results.<name>`; rows are objects or mappings.

    Columns whose field no row has are left out. `heads` replaces words of the titles.
    """
    columns, made = list(_results()[name].values()), tuple(rows)
    if made and all(isinstance(row, Mapping) for row in made):
        columns = [column for column in columns if any(column.key in row for row in made)]
    for old, new in (heads or {}).items():
        columns = [replace(column, title=column.title.replace(old, new)) for column in columns]
    return Table(name=name, title=title, columns=tuple(columns), rows=made)


@cache
def _results() -> dict[str, Registry]:
    return read_registry("results", {})


def _column(key: str, entry: Mapping[str, Any], sources: Mapping[str, Source]) -> Column:
    style, *paths = entry["show"].split()
    title = entry["title"]
    return Column(
        key,
        title,
        entry["meaning"],
        _printer(style, paths),
        align=entry.get("align", "l" if style in _WORDS else "r"),
        tex=entry.get("tex", _QUANTITY.sub(r"$\1$", title) if _QUANTITY.search(title) else None),
        csv=tuple(entry.get("csv", "").split()),
        is_wide=entry.get("is_wide", False),
        **({"value": sources[entry["of"]]} if "of" in entry else {}),
    )


def _printer(style: str, paths: list[str]) -> Callable[[Any], Cell]:
    """What prints the fields of a row in one style; without a path the row is the value."""
    if not paths:
        return lambda value: formatted(style, value)
    getters = [attrgetter(path) for path in paths]

    def shown(row: Any) -> Cell:
        if isinstance(row, Mapping):
            return (
                formatted(style, *(row[path] for path in paths))
                if paths[0] in row
                else empty_cell(len(paths))
            )
        return formatted(style, *(getter(row) for getter in getters))

    return shown
