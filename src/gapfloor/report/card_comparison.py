"""Two gap cards side by side: what a change did to the numbers, as a Markdown table for a pull request."""

from __future__ import annotations

from typing import Any

from gapfloor.escape import escape_markdown
from gapfloor.tables.cells import mean_sem

Row = tuple[str, str, str]


def compare_cards(before: dict[str, Any], after: dict[str, Any]) -> str:
    """A table with one line per game, budget and rule of either card; what a card lacks is a dash.

    The two cards are not tested against each other: the table only shows both.
    """
    old, new = _rows(before), _rows(after)
    header = ("Game", "Budget", "Rule", "Held-out return", "Gap", "Held-out call")
    lines = ["", "## Gap card: before → after", "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    for key in dict.fromkeys((*old, *new)):
        pairs = zip(old.get(key, ("–",) * 3), new.get(key, ("–",) * 3), strict=True)
        changes = [was if was == now else f"{was} → {now}" for was, now in pairs]
        lines.append(f"| {' | '.join(escape_markdown(cell) for cell in (*key, *changes))} |")
    return "\n".join(lines) + "\n"


def _rows(card: dict[str, Any]) -> dict[Row, Row]:
    return {
        (game["game"], game["budget"], rule): (
            _mean(entry["test"]),
            _mean(entry["gap"]),
            _call(entry["test"]),
        )
        for game in card["games"]
        for rule, entry in game["rules"].items()
    }


def _mean(entry: dict[str, Any] | None) -> str:
    if not entry or entry["mean"] is None:
        return "–"
    return mean_sem(entry["mean"], float("nan") if entry["sem"] is None else entry["sem"]).plain


def _call(entry: dict[str, Any] | None) -> str:
    # Cards of version 0.1 have the call alone.
    return str((entry or {}).get("call_label") or (entry or {}).get("call") or "–")
