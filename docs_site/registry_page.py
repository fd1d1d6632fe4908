"""The page with every floor that ships with gapfloor, made from the registry, with a field that filters its rows."""

from __future__ import annotations

from html import escape

from gapfloor.analysis.registry_entries import floor_table, published_table, shipped_registry

_INTRODUCTION = """# Table of floors

{count} entries of {families} families. [The registry](registry.md) explains the columns. Type a name, a family or a
reference to see only the rows that contain every word. [Published scores](#published-random-scores) are compared below.

<input type="search" id="floor-filter" placeholder="e.g. mujoco uniform" aria-label="Words that rows must contain">
<p id="floor-count" aria-live="polite"></p>

"""

_PUBLISHED = """Difference: ours minus the published score; z: that over the standard error of ours (sources give none).
A large z means that the published number is not the return of a uniform policy in this version of the environment: see
[the registry](registry.md#published-scores-that-differ)."""


def registry_page() -> dict[str, str]:
    """Path below `docs` -> Markdown."""
    registry = shipped_registry()
    introduction = _INTRODUCTION.format(count=len(registry.entries), families=len(registry.families))
    parts = [introduction, *_table("floor-table", *floor_table(registry.entries))]
    parts += ["", "## Published random scores", "", _PUBLISHED, ""]
    parts += _table("published-table", *published_table(registry.entries))
    return {"registry-table.md": "\n".join([*parts, ""])}


def _table(name: str, headings: list[str], rows: list[list[str]]) -> list[str]:
    return [f'<table id="{name}">', _row("th", headings), *(_row("td", row) for row in rows), "</table>"]


def _row(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
