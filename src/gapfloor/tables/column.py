"""A quantity, described once: what it is called, what it means, and how it is made from a row and printed.

The registry of columns is `data/columns.toml`, read by `tables.registry`. Every writer (terminal, HTML, LaTeX,
Markdown, CSV, records) and the documentation of columns read the same description.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.tables.cells import Cell, empty_cell, missing_cell, text_cell

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
