"""The gap with and without held-out levels that equal a training level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.analysis.leaked import LeakedGap, gap_without
from gapfloor.api.analyse import arrow_table
from gapfloor.errors import UsageError
from gapfloor.levels.overlap import Leakage, read_leakage
from gapfloor.machine import one_blas_thread
from gapfloor.records.store import Store
from gapfloor.text_tables import ReadableResult, TextTable, number, signed, with_error


@dataclass(frozen=True, repr=False)
class LeakedGaps(ReadableResult):
    """Gaps of every agent and rule, with and without leaked levels."""

    row_names = ("gaps",)

    gaps: tuple[LeakedGap, ...]
    """One row per game, budget, agent and rule."""

    def table(self) -> TextTable:
        """Gaps next to the floor's on the same levels."""
        return leak_table(self.gaps)

    def sentences(self) -> list[str]:
        """How to read the table, where something leaked."""
        if not any(row.leaked_levels for row in self.gaps):
            return []
        return [
            "Layouts repeat most among short, easy levels: read each gap against the floor's gap on the same levels. "
            "'Shared' also leaves out the training levels that have a held-out twin."
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


def leak_table(rows: Sequence[LeakedGap]) -> TextTable:
    """Gaps with and without leaked levels, each with the floor's on the same levels."""
    headings = [
        "game", "mode", "budget", "agent", "rule", "runs", "leaked", "episodes left", "gap", "without leaked",
        "without shared", "floor gap", "without leaked ", "without shared ", "return on leaked",
    ]  # fmt: skip
    lines = [
        [row.game, row.mode, row.budget, row.agent or ("(all)" if row.n_runs else "floor"), row.rule,
         str(row.n_runs), f"{row.leaked_levels}/{row.levels}", f"{row.episodes_left}/{row.episodes}",
         with_error(row.gap, row.sem), with_error(row.gap_without, row.sem_without),
         with_error(row.gap_unshared, row.sem_unshared), signed(row.floor_gap), signed(row.floor_gap_without),
         signed(row.floor_gap_unshared), number(row.test_leaked)]
        for row in rows
    ]  # fmt: skip
    return headings, lines
