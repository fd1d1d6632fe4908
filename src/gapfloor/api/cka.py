"""CKA of checkpoints' features between training and held-out levels, never without its controls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gapfloor.api.progress import step_teller
from gapfloor.levels.schedule import LevelSet
from gapfloor.representation.cka_measurement import CkaMeasurement, CkaSettings, measure_cka
from gapfloor.representation.recording import Geometry


def cka(
    checkpoints: str | Path | Sequence[str | Path],
    *,
    geometry: str = "64x16",
    other_geometry: str | None = "16x64",
    train: str | range | None = None,
    test: str | range = "1000:1100",
    draw: int = 0,
    permutations: int = 200,
    store: str | Path | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> CkaMeasurement:
    """Measure CKA of checkpoints' features between training and held-out levels, with its controls.

    A row has different inputs on the two sides, so the raw value measures nothing by itself; the 2x2 control
    shows what it consists of. Records go to results/cka of the store, where `report` finds them.

    Args:
        checkpoints: Checkpoints that `train` wrote (files, or folders of runs).
        geometry: How observations are collected: SLOTSxSTEPS.
        other_geometry: A second collection, which shows the effect of the geometry alone; none: leave it out.
        train: Training levels: START:STOP or a `range` (default: the checkpoint's own).
        test: Held-out levels, in the same form as `train`.
        draw: Seed of the level draw.
        permutations: Number of shuffles for each null.
        store: Store that keeps the records, in results/cka.
        progress: Called with words about each step. None: a line per step on a terminal or in a notebook; False:
            nothing.

    Returns:
        One record per checkpoint.

    Command line:
        gapfloor cka gapfloor-store/runs/*-8M-s*
        gapfloor cka runs/heist-easy-impala-25M-s1 --json --store heist-store

    Examples:
        >>> import gapfloor, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> run = gapfloor.train("maze", steps=512, envs=2, store=folder, progress=False)
        >>> found = gapfloor.cka(run.checkpoint, geometry="8x8", other_geometry=None, permutations=9, progress=False)
        >>> found.records[0]["game"], found.records[0]["n"]
        ('maze', 64)
    """
    settings = CkaSettings(
        geometry=Geometry.parse(geometry),
        other_geometry=None if other_geometry in (None, "none") else Geometry.parse(str(other_geometry)),
        test=LevelSet.parse(test),
        draw=draw,
        permutations=permutations,
    )
    named = [checkpoints] if isinstance(checkpoints, str | Path) else list(checkpoints)
    levels = LevelSet.parse(train) if train is not None else None
    return measure_cka(named, settings, train=levels, store=store, tell=step_teller(progress))
