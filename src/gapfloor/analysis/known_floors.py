"""Floors that come with the package, to be shown next to measured ones and never instead of them."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.registry_entries import shipped_registry
from gapfloor.analysis.rows import ReturnRow
from gapfloor.tables.cells import Cell, empty_cell, mean_sem
from gapfloor.tables.column import Column


@dataclass(frozen=True)
class KnownFloor:
    """What the package's own data and the paper say about a floor; pairs of mean and standard error."""

    shipped: tuple[float, float] | None
    paper: tuple[float, float] | None


def shipped_procgen_floor(row: ReturnRow) -> KnownFloor | None:
    """The known floor of the same game, mode and levels under the uniform policy in ProcGen, if there is one."""
    if row.reference != "uniform" or row.engine.split(" ")[0] != "procgen":
        return None
    document = _document()
    place = [row.game, row.mode, row.levels]
    shipped = [entry for entry in document["measured"]["floors"] if _place(entry) == place]
    paper = [entry for entry in document["paper"]["floors"] if _place(entry) == place]
    if not shipped and not paper:
        return None
    return KnownFloor(_pair(shipped), _pair(paper))


def _place(entry: dict[str, Any]) -> list[str]:
    return [entry["game"], entry["mode"], entry["levels"]]


def _pair(entries: list[dict[str, Any]]) -> tuple[float, float] | None:
    return (entries[0]["mean"], entries[0]["sem"]) if entries else None


def find_known_floor(game: str, mode: str, level_set: str) -> tuple[float, float, int, str] | None:
    """Mean, standard error, episodes and origin of the floor that ships with gapfloor for a game by any name.

    >>> find_known_floor("CoinRun", "easy", "test")[2]
    384
    """
    wanted = _folded(game)
    for entry in _document()["measured"]["floors"]:
        if (_folded(entry["game"]), entry["mode"], entry["level_set"]) == (wanted, mode, level_set):
            origin = f"the floor is the one that ships with gapfloor: {mode} levels {entry['levels']}"
            return entry["mean"], entry["sem"], entry["n_episodes"], origin
    for known in shipped_registry().entries:
        name = known.game.partition(":")[2] or known.game
        if wanted in (_folded(known.game), _folded(name), _folded(name.rpartition("-v")[0])):
            floor = known.floor
            origin = (
                f"the floor is the registry's: {known.game} {known.mode}".rstrip() + f", seeds {known.seeds}"
            )
            return floor.mean, floor.sem, floor.n_episodes, origin
    return None


def _folded(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())


@functools.cache
def _document() -> dict[str, Any]:
    text = importlib.resources.files("gapfloor").joinpath("data/floors.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document


def _known(name: str) -> Callable[[ReturnRow], Cell]:
    def cell(row: ReturnRow) -> Cell:
        pair = getattr(shipped_procgen_floor(row), name, None)
        return mean_sem(*pair) if pair else empty_cell(2)

    return cell


#: Next to a measured floor, for checking one's machine; it never replaces the measured one.
KNOWN_COLUMNS = (
    Column(
        "shipped", "shipped", "The floor in the package's data for these levels, for checking your machine.",
        _known("shipped"), align="r", csv=("shipped", "shipped_sem"),
    ),
    Column(
        "paper", "paper", "The floor that the paper prints, on its own draws.", _known("paper"), align="r",
        csv=("paper", "paper_sem"),
    ),
)  # fmt: skip
