"""What an observer of a cell is: something that sees visited states while the cell is played.

The player asks an observer which of the current states it wants and passes those on with the running engine, so that
their whole engine states can be kept. Which states are wanted must depend on (slot, index, step) alone, never on the
order of play. `gapfloor.calibration.probe` has the observer that measures merged entropy; whoever asks for it passes it
in, so that playing does not depend on calibration. `gapfloor.play.replay` has one that keeps frames.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import Engine, EngineSpec


class CellObserver(Protocol):
    """Sees some of the states that a cell visits and adds fields to its record."""

    def wants(
        self, slot: npt.NDArray[np.int64], index: npt.NDArray[np.int64], step: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Which of the current states to hand over."""
        ...

    def see(
        self,
        engine: Engine,
        row: int,
        *,
        slot: int,
        index: int,
        step: int,
        probabilities: npt.NDArray[np.float64] | None,
    ) -> None:
        """One wanted state, before its action is applied; `row` is its place in the running engine.

        `probabilities` are those of numbered actions; None where the policy has others.
        """
        ...

    def finish(self) -> dict[str, Any]:
        """Fields for the cell record, after the last episode."""
        ...


class CellProbe(Protocol):
    """Makes the observer of each cell; workers receive it, so it must survive pickling."""

    @property
    def states(self) -> int:
        """How many states of a cell are observed."""
        ...

    def with_classes(self, classes: tuple[int, ...]) -> CellProbe:
        """The same probe for a game whose actions have these classes, as labels."""
        ...

    def observer(self, engine: EngineSpec) -> CellObserver:
        """The observer of one cell."""
        ...
