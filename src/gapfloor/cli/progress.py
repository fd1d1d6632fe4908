"""Progress of cells being played: a live mean against the floor and the time left.

On a terminal this is a bar; otherwise one plain line per finished group of cells, so that logs stay readable.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from gapfloor.play.cell import CellSpec


class LiveProgress:
    """Shows the running mean of what is played, and the floor's where it is known."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._sum: dict[tuple[str, ...], float] = defaultdict(float)
        self._count: dict[tuple[str, ...], int] = defaultdict(int)
        self._cells_left: dict[tuple[str, ...], int] = defaultdict(int)
        self._bar: Progress | None = None
        self._started = time.monotonic()

    def start(self, cells: Sequence[CellSpec]) -> None:
        """Open the bar."""
        for cell in cells:
            self._cells_left[_place(cell)] += 1
        if self._quiet or not sys.stderr.isatty():
            return
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TimeRemainingColumn(), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._bar.add_task("episodes", total=sum(cell.design.episodes for cell in cells))
        self._bar.start()

    def episode(self, cell: CellSpec, episode_return: float) -> None:
        """Count one episode."""
        place = _place(cell)
        self._sum[place] += episode_return
        self._count[place] += 1
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=self._describe(place))

    def cell(self, cell: CellSpec) -> None:
        """Without a terminal, print a line when all draws of a place are done."""
        place = _place(cell)
        self._cells_left[place] -= 1
        if self._bar is None and not self._quiet and not self._cells_left[place]:
            seconds = time.monotonic() - self._started
            print(f"[{seconds:6.1f} s] {self._describe(place)}", file=sys.stderr, flush=True)

    def _describe(self, place: tuple[str, ...]) -> str:
        game, who, rule, level_set = place
        text = f"{game} {who} {rule} {level_set} " if who != rule else f"{game} {rule} {level_set} "
        text += f"mean {self._mean(place):.2f}"
        floor = (game, "uniform", "uniform", level_set)
        if place != floor and self._count.get(floor):
            text += f" (floor {self._mean(floor):.2f})"
        return text

    def _mean(self, place: tuple[str, ...]) -> float:
        return self._sum[place] / max(1, self._count[place])

    def __enter__(self) -> LiveProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _place(cell: CellSpec) -> tuple[str, ...]:
    return cell.engine.game, cell.run.name, cell.rule, cell.level_set
