"""Floors that come with the package, to be shown next to measured ones and never instead of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gapfloor.analysis.registry_entries import folded, shipped_registry
from gapfloor.analysis.rows import ReturnRow
from gapfloor.errors import UsageError
from gapfloor.shipped import shipped
from gapfloor.statistics.conventions import LARGEST


def shipped_procgen_floor(row: ReturnRow, key: str) -> dict[str, float] | None:
    """The same floor in ProcGen as the package's own data (`measured`) or the paper (`paper`) have it."""
    if row.reference != "uniform" or row.engine.split(" ")[0] != "procgen":
        return None
    wanted = (row.game, row.mode, row.levels)
    floors = shipped("data/floors.json")[key]["floors"]
    return next((each for each in floors if (each["game"], each["mode"], each["levels"]) == wanted), None)


@dataclass(frozen=True)
class StatedFloor:
    """A floor that was not measured here."""

    mean: float
    sem: float
    n: int
    """Its episodes; 0 where they are not known."""
    origin: str
    """Where it comes from, in words; empty for rows of a table."""


#: Names of an Atari game in Gymnasium, of which the registry has one.
_ATARI = re.compile(r"(?:ALE/)?(\w+?)(?:NoFrameskip-v[04]|Deterministic-v[04])|ALE/(\w+)-v5")


def find_known_floor(game: str, mode: str, level_set: str) -> StatedFloor | None:
    """The floor that ships with gapfloor for a game by any of its names.

    >>> find_known_floor("CoinRun", "easy", "test").n
    384
    """
    wanted = folded(next(filter(None, found.groups()), game) if (found := _ATARI.fullmatch(game)) else game)
    for entry in shipped("data/floors.json")["measured"]["floors"]:
        if (folded(entry["game"]), entry["mode"], entry["level_set"]) == (wanted, mode, level_set):
            origin = f"the floor is the one that ships with gapfloor: {mode} levels {entry['levels']}"
            return StatedFloor(entry["mean"], entry["sem"], entry["n_episodes"], origin)
    for known in shipped_registry().entries:
        name = known.game.partition(":")[2] or known.game
        if wanted in (folded(known.game), folded(name), folded(name.rpartition("-v")[0])):
            floor = known.floor
            origin = (
                f"the floor is the registry's: {known.game} {known.mode}".rstrip() + f", seeds {known.seeds}"
            )
            return StatedFloor(floor.mean, floor.sem, floor.n_episodes, origin)
    return None


def is_stated_floor(text: str) -> bool:
    """Whether a user's floor is a number, numbers per game or the registry, and not the name of rows.

    >>> is_stated_floor("3.1±0.2"), is_stated_floor("heist=3,maze=5"), is_stated_floor("random")
    (True, True, False)
    """
    values = [part.rpartition("=")[2] for part in text.split(",")]
    return text == "registry" or (bool(text) and all(map(parse_cell, values)))


def stated_floors(text: str) -> dict[str, StatedFloor]:
    """The floors in "3.1±0.2" (of every game, under an empty name) or "heist=3.1±0.2,maze=5±0.1"; ± is an error."""
    found = {}
    for part in text.split(","):
        game, equals, value = part.rpartition("=")
        parsed = parse_cell(value)
        if parsed is None or (equals and not game.strip()):
            raise UsageError(
                f"--floor {part!r} is neither an agent of the table, nor registry, nor a number such as 3.1±0.2 (its "
                "standard error) or heist=3.1±0.2."
            )
        mean, error, _ = parsed
        origin = f"the floor {value.strip()} was stated" + (" without its error" if error is None else "")
        found[game.strip()] = StatedFloor(mean, error or 0.0, 0, origin)
    return found


# Nothing is given back (`*+`): a cell of a thousand spaces would be tried in all ways to divide them.
_NUMBER = r"[-+]?(?:\d[\d ]*+(?:,\d{3})*+\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?"
_CELL = re.compile(rf"\s*+({_NUMBER})\s*+(%?)\s*+(?:(?:±|\+/-|\+-|\()\s*+({_NUMBER})\s*+%?\s*+\)?)?\s*+")


def parse_cell(text: str) -> tuple[float, float | None, float] | None:
    """A number, the one after ± if there is one, and what both were multiplied by; None for other texts.

    >>> parse_cell("4.0 ± 0.3"), parse_cell("85%"), parse_cell("n/a")
    ((4.0, 0.3, 1.0), (0.85, None, 0.01), None)
    """
    found = _CELL.fullmatch(text)
    if found is None:
        return None
    scale = 0.01 if found[2] else 1.0
    return parse_number(found[1]) * scale, parse_number(found[3]) * scale if found[3] else None, scale


def parse_number(text: str) -> float:
    """A number as people write it, with spaces or commas between thousands."""
    try:
        value = float(text.replace(" ", "").replace(",", ""))
    except ValueError:
        raise UsageError(f"{text!r} is not a number.") from None
    if not abs(value) <= LARGEST:
        raise UsageError(
            f"The number {text} is too large to compute with: divide all of them by one constant."
        )
    return value
