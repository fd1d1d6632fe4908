"""What a reader would still miss in a gap card: ours, or anyone's Markdown with the same labels.

A check of completeness, not of truth. JSON cards are checked field by field; Markdown cards by their labelled
lines (`- **Action rule:** sampled`) and, in the table of games, by their columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.errors import UsageError
from gapfloor.report.card import SCHEMA


@dataclass(frozen=True)
class CardGap:
    """Something that a card does not say."""

    field: str
    why: str
    """What a reader cannot know without it."""
    remedy: str
    """The column, option or command that supplies it."""


#: Field -> what a reader cannot know without it. The order is that of the answer.
REASONS = {
    "action rule": "which policy was measured: sampled and greedy actions are two policies",
    "level sets": "which levels are training levels and which are held out",
    "draws": "whether policy and floor played the same seeded draws of levels",
    "checkpoints": "whether the number belongs to fixed weights, and to which (content hash)",
    "seeds": "how many independently trained runs the number rests on",
    "floor on training levels": "where chance lies for the first term of the gap",
    "floor on held-out levels": "where chance lies for the second term of the gap",
    "gap": "the gap itself with an interval",
    "calls": "whether the returns are above, below or not told apart from the floor",
    "tests": "which tests were applied and how they were corrected",
    "plan": "whether the tests were fixed before the analysis (a locked plan with its hash)",
    "engine": "which engine and version made the levels",
    "versions": "which software computed the numbers",
}
#: Field -> the column of an episode file, the option or the command that supplies it.
REMEDIES = {
    "action rule": "column `rule` of the episode file, or --rule",
    "level sets": "column `level_set` (train, test) with `level_seed`; a store records the ranges",
    "draws": "column `draw`; a store records the draws",
    "checkpoints": "gapfloor evaluate, which stores the content hash of every checkpoint; an episode file has none",
    "seeds": "column `seed`",
    "floor on training levels": "gapfloor floor, rows with `reference` uniform on the training levels, or --floor",
    "floor on held-out levels": "gapfloor floor, rows with `reference` uniform on the held-out levels, or --floor",
    "gap": "episodes of the same runs on both level sets (column `level_set`)",
    "calls": "a floor on the held-out levels (gapfloor floor)",
    "tests": "gapfloor report --formats card, which names its tests",
    "plan": "gapfloor plan lock FILE, then gapfloor report --plan FILE",
    "engine": "gapfloor evaluate, which stores engine and version; an episode file has neither",
    "versions": "gapfloor report --formats card, which names its packages",
}
_ORDER = list(REASONS)
_LABELS = {
    "action rule": ("action rule", "rule"),
    "level sets": ("level sets", "levels"),
    "draws": ("draws", "level draws"),
    "checkpoints": ("checkpoints", "checkpoint"),
    "seeds": ("seeds", "runs"),
    "tests": ("tests", "statistics"),
    "plan": ("plan", "analysis plan"),
    "engine": ("engine",),
    "versions": ("versions", "software"),
}


def check_card(path: str | Path) -> list[CardGap]:
    """What the card in `path` leaves out; an empty list means that it is complete."""
    path = Path(path)
    text = _read_text(path)
    if path.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        return _check_json(text, path)
    return _check_markdown(text, path)


def read_card(path: str | Path) -> dict[str, Any]:
    """The card in a JSON file that `gapfloor report` wrote."""
    return dict(_parse(_read_text(Path(path)), Path(path)))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no card at {path}. gapfloor report --formats card writes one.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as text ({error}).") from None


def _parse(text: str, path: Path) -> Mapping[str, Any]:
    try:
        card = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path} is not JSON ({error}).") from None
    if not isinstance(card, Mapping):
        raise UsageError(f"{path} holds a {type(card).__name__}, not a card (an object).")
    schema = card.get("schema")
    if schema is not None and schema != SCHEMA:
        raise UsageError(f"{path} has the schema {schema!r}; this version checks {SCHEMA!r}.")
    return card


def _check_json(text: str, path: Path) -> list[CardGap]:
    card = _parse(text, path)
    games = [game for game in _as_list(card.get("games")) if isinstance(game, Mapping)]
    checks: dict[str, Callable[[], str]] = {
        "action rule": lambda: "" if _dig(card, "action_rule", "primary") else "missing",
        "level sets": lambda: "" if _has(card.get("level_sets"), ("train", "test")) else "missing",
        "draws": lambda: "" if card.get("draws") else "missing",
        "checkpoints": lambda: _checkpoints(card),
        "seeds": lambda: _games_lacking(games, lambda game: bool(game.get("seeds"))),
        "floor on training levels": lambda: _games_lacking(
            games, lambda game: bool(_dig(game, "floor", "train"))
        ),
        "floor on held-out levels": lambda: _games_lacking(
            games, lambda game: bool(_dig(game, "floor", "test"))
        ),
        "gap": lambda: _games_lacking(games, lambda game: _some_rule(game, "gap", ("mean", "low", "high"))),
        "calls": lambda: _games_lacking(games, lambda game: _some_rule(game, "test", ("call",))),
        "tests": lambda: "" if card.get("tests") else "missing",
        "plan": lambda: _plan(card.get("plan")),
        "engine": lambda: "" if card.get("engine") else "missing",
        "versions": lambda: "" if card.get("versions") else "missing",
    }
    return _answer({field: check() for field, check in checks.items()})


def _check_markdown(text: str, path: Path) -> list[CardGap]:
    found = {
        match[1].strip().lower(): match[2].strip()
        for match in re.finditer(r"^\s*[-*]?\s*\**([A-Za-z][A-Za-z \-]+?):\**\s*(.+)$", text, re.MULTILINE)
    }
    if not found and "|" not in text:
        raise UsageError(
            f"{path} has no labelled lines such as `- **Action rule:** sampled`, so it is not a gap card."
        )
    header = next((line.lower() for line in text.splitlines() if line.lstrip().startswith("|")), "")

    def labelled(field: str) -> str:
        return next((found[label] for label in _LABELS[field] if label in found), "")

    states = {field: "" if labelled(field) else "missing" for field in _LABELS}
    if states["checkpoints"] == "" and "hash" not in labelled("checkpoints").lower():
        states["checkpoints"] = "no content hash"
    plan = labelled("plan").lower()
    if plan and not re.search(r"[0-9a-f]{12,}", plan):
        states["plan"] = "no hash"
    elif "never locked" in plan:
        states["plan"] = "never locked"
    levels = labelled("level sets").lower()
    if levels and not ("train" in levels and "test" in levels):
        states["level sets"] = "train and test are not both named"
    columns = {
        "floor on training levels": "floor train",
        "floor on held-out levels": "floor test",
        "gap": "gap",
        "calls": "call",
    }
    for field, column in columns.items():
        states[field] = "" if column in header and not _column_is_empty(text, column) else "missing"
    return _answer(states)


def _column_is_empty(text: str, column: str) -> bool:
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        for line in text.splitlines()
        if line.lstrip().startswith("|")
    ]
    at = next((i for i, name in enumerate(rows[0]) if column in name.lower()), None)
    if at is None:
        return True
    return not any(len(row) > at and row[at] not in ("", "–", "-") for row in rows[2:])


def _answer(states: Mapping[str, str]) -> list[CardGap]:
    return [
        CardGap(
            field if states[field] == "missing" else f"{field} ({states[field]})",
            REASONS[field],
            REMEDIES[field],
        )
        for field in _ORDER
        if states.get(field)
    ]


def _checkpoints(card: Mapping[str, Any]) -> str:
    runs = [run for run in _as_list(_dig(card, "checkpoints", "runs")) if isinstance(run, Mapping)]
    if not runs:
        return "missing"
    without = sum(not run.get("sha256") for run in runs)
    return f"{without} of {len(runs)} without a content hash" if without else ""


def _plan(plan: Any) -> str:
    if not isinstance(plan, Mapping) or not plan.get("sha256"):
        return "missing"
    return "" if plan.get("locked_at") else "never locked"


def _games_lacking(games: list[Mapping[str, Any]], has: Callable[[Mapping[str, Any]], bool]) -> str:
    if not games:
        return "missing"
    lacking = [f"{game.get('game', '?')} {game.get('budget', '')}".strip() for game in games if not has(game)]
    if not lacking:
        return ""
    shown = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
    return "missing" if len(lacking) == len(games) else f"missing for {shown}"


def _some_rule(game: Mapping[str, Any], part: str, fields: tuple[str, ...]) -> bool:
    rules = game.get("rules")
    if not isinstance(rules, Mapping):
        return False
    return any(
        isinstance(entry, Mapping)
        and isinstance(entry.get(part), Mapping)
        and all(entry[part].get(field) is not None for field in fields)
        for entry in rules.values()
    )


def _dig(value: Any, *names: str) -> Any:
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _has(value: Any, names: tuple[str, ...]) -> bool:
    return isinstance(value, Mapping) and all(value.get(name) for name in names)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
