"""The gap with and without held-out levels that equal a training level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.analysis.leaked import LeakedGap, gap_without
from gapfloor.api.analyse import arrow_table
from gapfloor.errors import UsageError
from gapfloor.levels.overlap import Leakage, read_leakage
from gapfloor.machine import one_blas_thread
from gapfloor.records.store import Store
from gapfloor.report.tables.columns import columns_named
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table

#: As in the table of a report.
_COLUMNS = (
    "labels.game", "labels.mode", "labels.budget", "leak_agent", "rule", "row_n", "left_out", "train_levels",
    "test_levels", "episodes", "row_gap", "floor_gap", "test_left_out",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class LeakedGaps(ReadableResult):
    """Gaps of every agent and rule, with and without leaked levels."""

    row_names = ("gaps",)

    gaps: tuple[LeakedGap, ...]
    """Three rows per game, budget, agent and rule: all levels, without leaked and without shared ones."""

    def table(self) -> Table:
        """Gaps on all levels and on those that are left, next to the floor's on the same levels."""
        columns = [column for key in _COLUMNS for column in columns_named(key)]
        return Table(name="leaks", columns=tuple(columns), rows=self.gaps)

    def sentences(self) -> list[str]:
        """How to read the table, where something leaked."""
        if all(math.isnan(row.test_left_out) for row in self.gaps):
            return []
        return [
            "Layouts repeat most among short, easy levels: read each gap against the floor's gap on the same levels. "
            "'leaked' leaves out held-out levels that equal a training level, 'shared' also their training twins."
        ]


@one_blas_thread()
def gap_without_leaks(source: Any, leaks: str | Path | Leakage | None = None) -> LeakedGaps:
    """The gap with and without leaked levels; `leaks` is None where a store has its own."""
    leakage = leaks if isinstance(leaks, Leakage) else read_leakage(_place_of_leaks(source, leaks))
    rows = gap_without(arrow_table(source), leakage)
    if not rows:
        known = ", ".join(sorted({f"{one.game} {one.mode}" for one in leakage.games}))
        raise UsageError(f"No run of {source} is on both level sets of a checked game: checked are {known}.")
    return LeakedGaps(rows)


def _place_of_leaks(source: Any, leaks: str | Path | None) -> str | Path:
    if leaks is not None:
        return leaks
    folder = source.root if isinstance(source, Store) else source
    if not isinstance(folder, str | Path) or not Path(folder).is_dir():
        raise UsageError(
            f"{source} is not a gapfloor store: name its games, or give its leakage.json as leaks."
        )
    return folder
