"""Gap, distance from the floor and entropy of the current weights, measured every N steps of a training run.

For a loop of one's own, as in CleanRL:

    monitor = GapMonitor("coinrun", every=100_000, log_to=[writer])
    for step in ...:
        ...
        monitor(step, agent)

A measurement is a census of a few levels of each set. It grows block by block until the distance from the floor is
clear or `most_levels` is reached. It shows a tendency while training runs; a claim needs `gapfloor.evaluate` on
several runs. Workers play the episodes, and the random generators of the training process are put back, so a run with a
monitor ends with the same weights as one without.
"""

from __future__ import annotations

import glob
import math
import shutil
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.analysis.evaluation import CellRow
from gapfloor.api.evaluate import evaluate
from gapfloor.engines.engine import Option
from gapfloor.engines.global_random_state import read_random_states, restore_random_states
from gapfloor.errors import UsageError
from gapfloor.integrations.trackers import tracker_for
from gapfloor.levels import LevelSet
from gapfloor.records.store import Store

#: A distance of this many standard errors is clear. Larger than 2 because training is looked at many times.
CLEAR = 3.0


class GapWarning(UserWarning):
    """Argmax is below the floor while sampling is above it."""


@dataclass(frozen=True)
class _Mean:
    """A mean over episodes, which can be pooled with that of other levels."""

    mean: float
    sem: float
    n: int

    def pooled(self, other: _Mean) -> _Mean:
        n = self.n + other.n
        mean = (self.n * self.mean + other.n * other.mean) / n
        squares = sum(
            part.n * (part.n - 1) * part.sem**2 + part.n * (part.mean - mean) ** 2 for part in (self, other)
        )
        return _Mean(mean, math.sqrt(squares / (n - 1) / n), n)


@dataclass(frozen=True)
class GapReading:
    """One measurement of the weights at a training step."""

    step: int
    """Environment steps of training so far."""
    values: Mapping[str, float]
    """Numbers under stable names, e.g. `gapfloor/greedy/above_floor`; see docs/during-training.md."""
    seconds: float
    """Wall time of this measurement."""


class GapMonitor:
    """Measures the current weights every `every` steps under both rules on both level sets, next to the floor.

    Args:
        game: the environment, in the same form as for `gapfloor.evaluate`, e.g. `coinrun` or `gym:CartPole-v1`.
        every: training steps between two measurements.
        rules: the action rules to measure.
        train: training levels; the first levels of the range are played.
        test: held-out levels, in the same form.
        levels: levels of each set in one block of the census.
        most_levels: levels of each set after which the census ends, clear or not.
        probe: states per sampled cell that are cloned to measure merged entropy; 0: none. Only ProcGen can clone.
        log_to: TensorBoard writers, runs of Weights & Biases or Trackio, or functions of values and step.
        store: where the floor's episodes are kept for the next run; None: a temporary folder.
        mode: distribution mode of the game.
        options: options of the engine.
        workers: number of worker processes; None: one per core.
    """

    def __init__(
        self,
        game: str,
        *,
        every: int,
        rules: Sequence[str] = ("sampled", "greedy"),
        train: str = "0:200",
        test: str = "1000:1100",
        levels: int = 16,
        most_levels: int = 64,
        probe: int = 0,
        log_to: Sequence[Any] = (),
        store: str | Path | None = None,
        mode: str | None = None,
        options: Mapping[str, Option] | None = None,
        workers: int | None = None,
    ) -> None:
        self.readings: list[GapReading] = []
        self._every = _at_least_one("every", every)
        self._rules = tuple(rules)
        self._blocks = _blocks(train, test, levels=levels, most_levels=most_levels)
        self._trackers = [tracker_for(target) for target in log_to]
        self._temporary = tempfile.TemporaryDirectory(prefix="gapfloor-")
        self._floors = Path(self._temporary.name if store is None else store)
        self._settings: dict[str, Any] = {
            "game": game, "rules": self._rules, "mode": mode, "options": options, "probe": probe,
            "workers": workers, "progress": None,
        }  # fmt: skip
        self._next = self._every
        self._has_warned = False
        self._started = time.perf_counter()

    def __call__(self, step: int, policy: Any) -> GapReading | None:
        """Measure `policy` if `step` has reached the next multiple of `every`; otherwise return None at once."""
        if step < self._next:
            return None
        self._next = (step // self._every + 1) * self._every
        return self.measure(step, policy)

    def measure(self, step: int, policy: Any) -> GapReading:
        """Measure `policy` now. Global random generators are as before when this returns."""
        started = time.perf_counter()
        kept = read_random_states()
        try:
            values = self._values(step, policy)
        finally:
            restore_random_states(kept)
        reading = GapReading(step, values, time.perf_counter() - started)
        self.readings.append(reading)
        for tracker in self._trackers:
            tracker(values, step)
        self._warn(values)
        return reading

    @property
    def share_of_time(self) -> float:
        """The share of the wall time since the monitor was made that measurements took."""
        return sum(reading.seconds for reading in self.readings) / (time.perf_counter() - self._started)

    def _values(self, step: int, policy: Any) -> dict[str, float]:
        means: dict[tuple[str, str], _Mean] = {}
        entropies: dict[str, list[float]] = {}
        for train, test in self._blocks:
            for cell in self._play(policy, train, test, budget=str(step)):
                place = ("floor" if cell.reference else cell.rule, cell.level_set)
                mean = _Mean(cell.mean, cell.sem, cell.n_episodes)
                means[place] = means[place].pooled(mean) if place in means else mean
                if cell.rule == "sampled" and not cell.reference:
                    _note_entropies(entropies, cell)
            if all(_is_clear(means, rule) for rule in self._rules):
                break
        return _named(means, self._rules, entropies)

    def _play(self, policy: Any, train: str, test: str, *, budget: str) -> tuple[CellRow, ...]:
        # A store of its own: weights that have not changed since the last time would be refused as a copy of a run.
        with tempfile.TemporaryDirectory(prefix="gapfloor-") as folder:
            _copy_references(self._floors, Path(folder))
            measured = evaluate(
                policy, train=train, test=test, design="census", budget=budget, seeds=[0], agent="training",
                store=folder, **self._settings,
            )  # fmt: skip
            _copy_references(Path(folder), self._floors)
        return measured.cells

    def _warn(self, values: Mapping[str, float]) -> None:
        if self._has_warned or not {"sampled", "greedy"} <= set(self._rules):
            return
        away = {
            rule: values[f"gapfloor/{rule}/above_floor"]
            / max(values[f"gapfloor/{rule}/above_floor_sem"], 1e-12)
            for rule in ("sampled", "greedy")
        }
        if away["sampled"] >= CLEAR and away["greedy"] <= -CLEAR:
            self._has_warned = True
            greedy, floor, sampled = (
                values[f"gapfloor/{name}/test"] for name in ("greedy", "floor", "sampled")
            )
            warnings.warn(
                f"On held-out levels the greedy policy is below the floor ({greedy:.2f} against {floor:.2f}) and the "
                f"sampled policy is above it ({sampled:.2f}): the result depends on the rule, so state it.",
                GapWarning,
                stacklevel=3,
            )


def _copy_references(source: Path, target: Path) -> None:
    """Copy the cells of references that `target` lacks."""
    if not (source / "cells").is_dir():
        return
    Store(target).prepare()
    for cell in Store(source).cells():
        for file in source.glob(f"cells/{glob.escape(cell.path.stem)}.*") if cell.is_reference else ():
            if not (target / "cells" / file.name).exists():
                shutil.copyfile(file, target / "cells" / file.name)


def _note_entropies(entropies: dict[str, list[float]], cell: CellRow) -> None:
    for name, value in (("raw", cell.entropy_raw), ("merged", cell.entropy_merged)):
        if value is not None and math.isfinite(value):
            entropies.setdefault(name, []).append(value)


def _is_clear(means: Mapping[tuple[str, str], _Mean], rule: str) -> bool:
    distance, sem = _difference(means[rule, "test"], means["floor", "test"])
    return abs(distance) >= CLEAR * sem


def _difference(left: _Mean, right: _Mean) -> tuple[float, float]:
    return left.mean - right.mean, math.hypot(left.sem, right.sem)


def _named(
    means: Mapping[tuple[str, str], _Mean], rules: Sequence[str], entropies: Mapping[str, list[float]]
) -> dict[str, float]:
    values = {f"gapfloor/{rule}/{level_set}": mean.mean for (rule, level_set), mean in means.items()}
    for rule in ("floor", *rules):
        gap = _difference(means[rule, "train"], means[rule, "test"])
        values[f"gapfloor/{rule}/gap"], values[f"gapfloor/{rule}/gap_sem"] = gap
    for rule in rules:
        above = _difference(means[rule, "test"], means["floor", "test"])
        values[f"gapfloor/{rule}/above_floor"], values[f"gapfloor/{rule}/above_floor_sem"] = above
    for name, found in entropies.items():
        values[f"gapfloor/entropy/{name}"] = sum(found) / len(found)
    values["gapfloor/levels"] = float(means["floor", "test"].n)
    return values


def _blocks(train: str, test: str, *, levels: int, most_levels: int) -> list[tuple[str, str]]:
    """Blocks of the two level sets that are played one after the other."""
    _at_least_one("levels", levels - 1)  # one level has no standard error
    sets = [LevelSet.parse(text) for text in (train, test)]
    usable = min(most_levels, *(levels_of.n for levels_of in sets))
    if usable < levels:
        raise UsageError(
            f"levels={levels} is more than most_levels or a level set has ({usable}): use fewer."
        )
    return [
        (
            f"{sets[0].start + first}:{sets[0].start + first + levels}",
            f"{sets[1].start + first}:{sets[1].start + first + levels}",
        )
        for first in range(0, usable - levels + 1, levels)
    ]


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"`{name}` is too small for a measurement: use a larger number.")
    return value
