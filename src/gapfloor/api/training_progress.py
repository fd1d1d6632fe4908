"""How training shows a run: steps per second, in-loop return against the floor, time left.

The floor shown here is a rough one (the first episode of 64 slots under uniform actions) and enters no result; the
floor of an evaluation is measured by `gapfloor floor` on the same draws.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gapfloor.training.spec import TrainingSpec
    from gapfloor.training.trainer import Tick

_FLOOR_SLOTS = 64
_FLOOR_STEPS = 1000


def estimate_floor(spec: TrainingSpec) -> float:
    """Mean return of the first episode of each of 64 slots under uniform actions, each at most 1,000 steps."""
    from gapfloor.engines.procgen import ProcgenEngine

    engine = ProcgenEngine(spec.game, slots=_FLOOR_SLOTS, levels=spec.levels, mode=spec.mode, draw=spec.seed)
    rng = np.random.default_rng(np.random.SeedSequence([spec.seed, 0]))
    returns, under_way = np.zeros(_FLOOR_SLOTS), np.ones(_FLOOR_SLOTS, bool)
    for _ in range(_FLOOR_STEPS):
        _, rewards, firsts = engine.step(rng.integers(engine.n_actions, size=_FLOOR_SLOTS))
        returns += rewards * under_way
        under_way &= ~firsts.astype(bool)
        if not under_way.any():
            break
    engine.close()
    return float(returns.mean())


class TrainingProgress:
    """A progress bar on a terminal, one line every few updates elsewhere, nothing when quiet."""

    def __init__(self, spec: TrainingSpec, *, is_quiet: bool) -> None:
        self._spec, self._is_quiet = spec, is_quiet
        self._floor: float | None = None
        self._bar: Any = None
        self._task: Any = None
        self._shown_at = 0

    def __enter__(self) -> TrainingProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, tick: Tick) -> None:
        """Show one update."""
        if self._is_quiet:
            return
        if self._floor is None:
            self._floor = estimate_floor(self._spec)
        text = self._describe(tick)
        if sys.stderr.isatty():
            self._advance_bar(tick, text)
            return
        every = max(1, tick.n_updates // 50)
        if tick.row.iteration - self._shown_at >= every or tick.row.iteration in (1, tick.n_updates):
            self._shown_at = tick.row.iteration
            sys.stderr.write(f"{self._spec.run} {tick.row.steps:>10,} steps  {text}\n")
            sys.stderr.flush()

    def _describe(self, tick: Tick) -> str:
        minutes, seconds = divmod(round(tick.seconds_left), 60)
        hours, minutes = divmod(minutes, 60)
        left = f"{hours}h{minutes:02d}" if hours else f"{minutes}m{seconds:02d}"
        return (
            f"in-loop return {tick.row.in_loop_return:6.2f} (floor about {self._floor:.2f})  entropy "
            f"{tick.row.entropy_nats:.3f}  {tick.steps_per_second:4.0f} steps/s  {left} left"
        )

    def _advance_bar(self, tick: Tick, text: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        if self._bar is None:
            columns = (
                TextColumn(self._spec.run),
                BarColumn(),
                TextColumn("{task.completed:,}"),
                TextColumn("{task.description}"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task("", total=tick.n_updates * self._spec.hyperparameters.batch)
        self._bar.update(self._task, completed=tick.row.steps, description=text)
