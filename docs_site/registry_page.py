"""The page with every floor that ships with gapfloor, made from the registry, with fields that filter its rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path

from gapfloor.analysis.known_floors import (
    RegisteredEnvironment,
    RegisteredFloor,
    shipped_registry,
)
from gapfloor.tables.cells import formatted
from gapfloor.tables.table import Table, table_of

sys.path.append(str(Path(__file__).parents[1] / "tools"))
from registry_csv import registry_csv

_INTRODUCTION = """# Table of floors

{count} entries of {families} families. [The registry](registry.md) explains the columns. Type a name or a reference to
see only the rows that contain every word. [Published scores](#published-random-scores) are compared below. Download
everything:
<a href="registry.csv" download>registry.csv</a>, <a href="registry.json" download>registry.json</a>.

<div class="floor-search">
<input type="search" id="floor-filter" placeholder="e.g. hopper uniform" aria-label="Words that rows must contain">
<select id="floor-family" aria-label="Family"><option value="">all families</option>{options}</select>
<span id="floor-count" aria-live="polite"></span>
</div>

"""

_PUBLISHED = """Difference: ours minus the published score; z: that over the standard error of ours (sources give none).
A large z means that the published number is not the return of a uniform policy in this version of the environment: see
[the registry](registry.md#published-scores-that-differ)."""

#: Columns after the environment; those with a class are left out on narrow screens.
_COLUMNS = {
    "reference": "", "mean ± SEM": "", "episodes": "wide", "length": "wide", "success": "wide", "published": "wide",
}  # fmt: skip
_KINDS = ["", *_COLUMNS.values()]


def registry_page() -> dict[str, str]:
    """Path below `docs` -> contents: the page, and the files that others import."""
    registry = shipped_registry()
    options = "".join(f"<option>{escape(family)}</option>" for family in registry.families)
    introduction = _INTRODUCTION.format(
        count=len(registry.entries), families=len(registry.families), options=options
    )
    ordered = sorted(registry.entries, key=lambda entry: registry.families.index(entry.family))
    parts = [introduction, '<table id="floor-table">', _row("th", ["environment", *_COLUMNS], _KINDS)]
    for family, entries in groupby(ordered, key=lambda entry: entry.family):
        parts += _family_rows(family, list(entries))
    parts += ["</table>", "", "## Published random scores", "", _PUBLISHED, ""]
    parts += _table("published-table", _published(registry.entries))
    return {
        "registry-table.md": "\n".join([*parts, ""]),
        "registry.json": (files("gapfloor") / "data" / "registry.json").read_text(encoding="utf-8"),
        "registry.csv": registry_csv(registry),
    }


def _family_rows(family: str, entries: list[RegisteredEnvironment]) -> list[str]:
    """A heading that says what a seed decides, and a row per environment and reference."""
    seeds = ", ".join(dict.fromkeys(entry.seed for entry in entries))
    heading = f'<th colspan="{len(_COLUMNS) + 1}">{escape(family)} <small>a seed decides: {escape(seeds)}</small></th>'
    rows = [f'<tr class="family" data-family="{escape(family)}">{heading}</tr>']
    for entry in entries:
        for floor in entry.floors:
            cells = _row("td", _cells(entry, floor), _KINDS)
            rows.append(cells.replace("<tr>", f'<tr data-family="{escape(family)}">', 1))
    return rows


def _cells(entry: RegisteredEnvironment, floor: RegisteredFloor) -> list[str]:
    published = (
        ", ".join(formatted("fine", each.score).typed for each in entry.published)
        if floor is entry.floor
        else ""
    )
    return [
        entry.label,
        f"{floor.reference} ({floor.action})" if floor.action else floor.reference,
        formatted("fine_sem", floor.mean, floor.sem).typed,
        f"{floor.n_episodes:,}",
        f"{floor.length:,.0f}",
        "" if floor.success is None else f"{100 * floor.success:.1f}%",
        published,
    ]


def _published(entries: Sequence[RegisteredEnvironment]) -> Table:
    """Our uniform floors next to published random scores: difference, and that over our standard error."""
    rows = []
    for entry in entries:
        for score in entry.published:
            delta, z = entry.difference(score)
            rows.append(
                {
                    "environment": entry.label, "floor": entry.floor.mean, "floor_sem": entry.floor.sem,
                    "n_episodes": entry.floor.n_episodes, "published": score.score, "difference": delta, "z": z,
                    "source": score.source,
                }
            )  # fmt: skip
    return table_of("published", rows)


def _table(name: str, table: Table) -> list[str]:
    heads = _row("th", [column.title for column in table.columns])
    rows = (_row("td", [cell.typed for cell in row]) for row in table.body)
    return [f'<table id="{name}">', heads, *rows, "</table>"]


def _row(tag: str, cells: list[str], kinds: Sequence[str] = ()) -> str:
    """A row of HTML; `kinds` are the classes of its cells, where they have any."""
    opened = [f'<{tag} class="{kind}">' if kind else f"<{tag}>" for kind in kinds or [""] * len(cells)]
    closed = (f"{escape(cell)}</{tag}>" for cell in cells)
    return "<tr>" + "".join(map("".join, zip(opened, closed, strict=True))) + "</tr>"
