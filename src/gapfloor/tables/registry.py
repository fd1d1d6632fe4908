"""The registry of columns, read from `data/columns.toml`: one description, from which every writer of tables works."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import Any

from gapfloor.settings import shipped
from gapfloor.tables.cells import Cell, empty_cell, formatted
from gapfloor.tables.table import Column, Table

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
