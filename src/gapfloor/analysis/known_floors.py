"""Floors that come with the package, to be shown next to measured ones and never instead of them."""

from __future__ import annotations

import functools
import importlib.resources
import json
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.rows import ReturnRow
from gapfloor.text_tables import with_error


@dataclass(frozen=True)
class KnownFloor:
    """What the package's own data and the paper say about a floor; pairs of mean and standard error."""

    shipped: tuple[float, float] | None
    paper: tuple[float, float] | None

    def columns(self) -> list[str]:
        """The two columns of the table that `floor` prints."""
        return [with_error(*pair) if pair else "" for pair in (self.shipped, self.paper)]


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


@functools.cache
def _document() -> dict[str, Any]:
    text = importlib.resources.files("gapfloor").joinpath("data/floors.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document
