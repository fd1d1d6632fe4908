"""The registry of floors as CSV, and the scores that are published for an environment."""

from __future__ import annotations

import csv
import io
from typing import Any

from gapfloor.analysis.known_floors import (
    FloorRegistry,
    PublishedScore,
    RegisteredEnvironment,
    RegisteredFloor,
    published_scores,
)

CSV_COLUMNS = (
    "game", "mode", "family", "reference", "action", "mean", "sem", "n_episodes", "length", "q05", "q25", "q50", "q75",
    "q95", "success", "engine", "version", "actions", "seed", "seeds", "published", "published_source", "provenance",
    "command",
)  # fmt: skip


def registry_csv(registry: FloorRegistry) -> str:
    """The text of `registry.csv`: one row per environment and reference."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for entry in registry.entries:
        for floor in entry.floors:
            writer.writerow(_csv_row(entry, floor))
    return text.getvalue()


def scores_of(game: str, mode: str) -> tuple[PublishedScore, ...]:
    """The published random scores of one environment."""
    return tuple(score for score in published_scores() if (score.game, score.mode) == (game, mode))


def _csv_row(entry: RegisteredEnvironment, floor: RegisteredFloor) -> list[Any]:
    shown = entry.published if floor is entry.floor else ()
    return [
        entry.game, entry.mode, entry.family, floor.reference, floor.action, floor.mean, floor.sem, floor.n_episodes,
        floor.length, *floor.quantiles, "" if floor.success is None else floor.success, entry.engine, entry.version,
        entry.actions, entry.seed, floor.seeds or entry.seeds, "; ".join(str(each.score) for each in shown),
        "; ".join(each.source for each in shown), floor.provenance, entry.command,
    ]  # fmt: skip
