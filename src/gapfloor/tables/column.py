"""A quantity, described once: what it is called, what it means, and how it is made from a row and printed.

A registry is a tuple or a dict of columns for one type of row, kept by the folder that owns the row type. Every
writer (terminal, HTML, LaTeX, Markdown, CSV, records) and the documentation of columns read the same description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.escape import escape_tex
from gapfloor.tables.cells import Cell

Align = Literal["l", "r", "c"]


@dataclass(frozen=True)
class Text:
    """Words of our own (headers, captions) in both spellings; `tex` defaults to the escaped plain text."""

    plain: str
    tex_source: str | None = None

    @property
    def tex(self) -> str:
        """LaTeX of the text."""
        return escape_tex(self.plain) if self.tex_source is None else self.tex_source


@dataclass(frozen=True)
class Column:
    """A column of a table. One that depends on a rule or a cut is made by a function that returns a column.

    >>> from gapfloor.tables.cells import mean_sem
    >>> def mean_return(rule):
    ...     return Column(
    ...         f"{rule}_return", "Return", f"Mean return under {rule}.", lambda row: mean_sem(*row[rule]),
    ...         align="r", csv=(rule, f"{rule}_sem"),
    ...     )
    >>> mean_return("greedy").cell({"greedy": (7.25, 0.5)}).plain
    '7.25 ± 0.50'
    """

    key: str
    """Its name in a registry."""
    title: str
    """The words above it."""
    meaning: str
    """What it is, in one sentence; the documentation of columns prints it."""
    cell: Callable[[Any], Cell]
    """Its entry for a row, made with the formatters of `tables.cells`."""
    align: Align = "l"
    tex: str | None = None
    """LaTeX of the title where escaping is not enough."""
    csv: tuple[str, ...] = ()
    """Names of the raw values of a cell in CSV, JSON, Arrow and pandas; by default the key alone."""
    is_wide: bool = False
    """Whether a terminal shows it only with `--wide`."""

    def __post_init__(self) -> None:
        if not self.csv:
            object.__setattr__(self, "csv", (self.key,))

    @property
    def header(self) -> Text:
        """The title in both spellings."""
        return Text(self.title, self.tex)


class LayoutColumn(Column):
    """A column whose entries a layout prepares, e.g. to leave out a repeated name."""

    def __init__(self, header: Text, align: Align, csv: tuple[str, ...]) -> None:
        super().__init__(csv[0], header.plain, "", _not_prepared, align=align, tex=header.tex_source, csv=csv)


def by_key(columns: Iterable[Column]) -> dict[str, Column]:
    """A registry, from which tables choose columns by key; a key is used once."""
    registry: dict[str, Column] = {}
    for column in columns:
        assert column.key not in registry, column.key
        registry[column.key] = column
    return registry


def _not_prepared(row: Any) -> Cell:
    raise TypeError(f"A layout prepares the cells of this column; there is none for {row!r}.")
