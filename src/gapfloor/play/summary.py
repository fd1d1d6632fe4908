"""Means and standard errors of cells, read back from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gapfloor.errors import StoreError
from gapfloor.play.cell import CellSpec
from gapfloor.records.store import Store, read_episodes
from gapfloor.statistics.census import census_sem, level_means, within_level_sample

Floats = npt.NDArray[np.float64]

#: Rules under which an episode is a function of its level.
DETERMINISTIC = ("greedy", "merged")


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


def summarise_cells(cells: Sequence[CellSpec], returns: Mapping[str, Floats]) -> tuple[float, float, int]:
    """Mean, standard error and n of cells' episodes: per episode, or in a census within levels.

    A census that plays every level once has no repeats to tell its error from, and is given the (wider) one of
    independent episodes; under a deterministic rule its error is 0, whatever the number of repeats.
    """
    pooled = [returns[cell.key] for cell in cells]
    mean, sem, n = summarise(pooled)
    if cells and cells[0].design.is_census:
        levels = np.concatenate([cell.schedule().level_seed for cell in cells])
        if cells[0].rule in DETERMINISTIC or cells[0].rule.startswith("constant:"):
            return mean, 0.0, n
        within = census_sem(np.concatenate(pooled), levels)
        sem = within if np.isfinite(within) else sem
    return mean, sem, n


def summarise_reference(
    cells: Sequence[CellSpec], returns: Mapping[str, Floats]
) -> tuple[float, float, int, int]:
    """Mean, standard error, episodes and networks of a reference: several networks are the units of its error."""
    mean, sem, n = summarise_cells(cells, returns)
    networks = list(dict.fromkeys(cell.policy for cell in cells))
    if len(networks) > 1:
        means = [np.mean([returns[c.key].mean() for c in cells if c.policy == each]) for each in networks]
        sem = float(np.std(means, ddof=1) / np.sqrt(len(means)))
    return mean, sem, n, len(networks)


def gap_error(cells: Sequence[CellSpec], returns: Mapping[str, Floats]) -> float:
    """The standard error of one half of a gap: over episodes, or in a census over levels.

    A gap asks about other levels than these, so what a census leaves out of a mean's error counts here.
    """
    pooled = [returns[cell.key] for cell in cells]
    if cells[0].design.is_census:
        levels = np.concatenate([cell.schedule().level_seed for cell in cells])
        pooled = [level_means(np.concatenate(pooled), levels)]
    return summarise(pooled)[1]


def units_of(cells: Sequence[CellSpec], returns: Mapping[str, Floats]) -> Floats:
    """Cells' episodes as a sample whose spread is the one of their design: in a census, the one within levels."""
    pooled = np.concatenate([returns[cell.key] for cell in cells])
    if not cells[0].design.is_census:
        return pooled
    return within_level_sample(pooled, np.concatenate([cell.schedule().level_seed for cell in cells]))


def summarise(returns: Sequence[Floats]) -> tuple[float, float, int]:
    """Mean, per-episode standard error sd(ddof=1)/sqrt(n) and n of pooled episodes."""
    pooled = np.concatenate(returns)
    sem = float(pooled.std(ddof=1) / np.sqrt(len(pooled))) if len(pooled) > 1 else float("nan")
    return float(pooled.mean()), sem, len(pooled)
