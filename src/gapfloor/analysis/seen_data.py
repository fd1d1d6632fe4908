"""How much of a study has been seen: cells in a store or a file, and data that lie next to a plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.errors import GapfloorError
from gapfloor.plan.model import Plan
from gapfloor.records.dataset import is_dataset

#: Files that may hold episodes.
_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")
#: More files below a plan's folder are not looked at.
_MOST_FILES = 20_000


def count_cells(source: Source, *, rules: tuple[str, ...] | None = None) -> int:
    """How many cells (run or reference x rule x level set x draw) a source holds, of these rules or of all."""
    inputs = read_inputs(source)
    study = group(inputs, Plan.paper())
    if rules is None:
        return study.n_cells
    return sum(
        len(sample.draws)
        for condition, runs in study.policies.items()
        if condition.rule in rules
        for sample in runs.values()
    )


def data_next_to(plan: Path, *others: Path, rules: tuple[str, ...] | None = None) -> dict[str, int]:
    """Stores and episode files in a plan's folder or below it, and stores elsewhere, with the cells of each.

    Args:
        plan: the plan's file.
        others: further folders that may be stores.
        rules: count the cells of these rules only.
    """
    folder = Path(plan).resolve().parent
    below = list(_below(folder))
    stores = [path for path in (*(other.resolve() for other in others), *below) if (path / "cells").is_dir()]
    datasets = [path for path in below if is_dataset(path)]
    inside = {*stores, *datasets}
    files = [
        path
        for path in below
        if path.suffix.lower() in _SUFFIXES and path.is_file() and inside.isdisjoint(path.parents)
    ]
    found: dict[str, int] = {}
    for path in dict.fromkeys((*stores, *datasets, *files)):
        try:
            n = count_cells(path, rules=rules)
        except GapfloorError:
            # Not every table in a folder holds episodes.
            continue
        if n:
            found[str(path.relative_to(folder)) if path.is_relative_to(folder) else path.name] = n
    return found


def _below(folder: Path) -> Iterator[Path]:
    """Files and folders below a folder, in order; hidden ones, and what a store holds, are not entered."""
    looked_at = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [] if (Path(place) / "cells").is_dir() else sorted(f for f in folders if f[0] != ".")
        for name in (*folders, *sorted(files)):
            looked_at += 1
            if looked_at > _MOST_FILES:
                return
            yield Path(place) / name
