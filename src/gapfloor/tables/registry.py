"""The registry of columns, read from `data/columns.toml`: one description, from which every writer of tables works."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from operator import attrgetter
from typing import Any

from gapfloor.tables.cells import Cell, formatted
from gapfloor.tables.column import Column

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
        section: `report`, or empty for the registries of rows.
        sources: what the names of `of` stand for.
    """
    found = _document().get(section, {}) if section else _document()
    return {
        name: {key: _column(key, entry, sources) for key, entry in entries.items()}
        for name, entries in found.items()
        if section or name != "report"
    }


@cache
def _document() -> dict[str, Any]:
    text = resources.files("gapfloor").joinpath("data/columns.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


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
    return lambda row: formatted(style, *(getter(row) for getter in getters))
