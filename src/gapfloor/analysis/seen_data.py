"""How much of a study has been seen: cells in a store or a file, and data that lie next to a plan."""

from __future__ import annotations

from pathlib import Path

from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.errors import GapfloorError
from gapfloor.plan.model import paper_plan

#: Files that may hold episodes.
_SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")


def count_cells(source: Source, *, rules: tuple[str, ...] | None = None) -> int:
    """How many cells (run or reference x rule x level set x draw) a source holds, of these rules or of all."""
    inputs = read_inputs(source)
    study = group(inputs, paper_plan())
    if rules is None:
        return study.n_cells
    return sum(
        len(sample.draws)
        for condition, runs in study.policies.items()
        if condition.rule in rules
        for sample in runs.values()
    )


def data_next_to(plan: Path, *others: Path, rules: tuple[str, ...] | None = None) -> dict[str, int]:
    """Stores and episode files in a plan's folder, and stores elsewhere, with the number of cells of each.

    Args:
        plan: the plan's file.
        others: further folders that may be stores.
        rules: count the cells of these rules only.
    """
    beside = sorted(path for path in Path(plan).resolve().parent.iterdir())
    stores = [path for path in (*(other.resolve() for other in others), *beside) if (path / "cells").is_dir()]
    files = [path for path in beside if path.is_file() and path.suffix.lower() in _SUFFIXES]
    found: dict[str, int] = {}
    for path in dict.fromkeys((*stores, *files)):
        try:
            n = count_cells(path, rules=rules)
        except GapfloorError:
            # Not every table in a folder holds episodes.
            continue
        if n:
            found[path.name] = n
    return found
