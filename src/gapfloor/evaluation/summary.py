"""Means and standard errors of cells, read back from the store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gapfloor.errors import StoreError
from gapfloor.evaluation.cell import CellSpec
from gapfloor.records.store import Store, read_episodes

Floats = npt.NDArray[np.float64]


def read_cells(store: Store, wanted: Sequence[CellSpec]) -> dict[str, Floats]:
    """The returns of each wanted cell, by key."""
    found = {}
    for cell in wanted:
        path = store.cells_folder / f"{cell.file_name}.parquet"
        if not path.exists():
            raise StoreError(
                f"The cell {cell.file_name} is not in the store {store.root}: run the command again."
            )
        found[cell.key] = read_episodes(path).column("episode_return").to_numpy()
    return found


def summarise(returns: Sequence[Floats]) -> tuple[float, float, int]:
    """Mean, per-episode standard error sd(ddof=1)/sqrt(n) and n of pooled episodes."""
    pooled = np.concatenate(returns)
    sem = float(pooled.std(ddof=1) / np.sqrt(len(pooled))) if len(pooled) > 1 else float("nan")
    return float(pooled.mean()), sem, len(pooled)
