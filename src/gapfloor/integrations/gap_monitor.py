"""Gap, distance from the floor and entropy of the current weights, measured every N steps of a training run.

For a loop of one's own, as in CleanRL:

    monitor = GapMonitor("coinrun", every=100_000, log_to=[writer])
    for step in ...:
        ...
        monitor(step, agent)

A measurement is a census of a few levels of each set. It shows a tendency while training runs; a claim needs
`gapfloor.evaluate` on several runs. Workers play the episodes, and the random generators of the training process are
put back, so a run with a monitor ends with the same weights as one without.
"""

from __future__ import annotations

import glob
import math
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.analysis.evaluation import CellRow
from gapfloor.api.evaluate import evaluate
from gapfloor.engines.engine import Option
from gapfloor.engines.global_random_state import read_random_states, restore_random_states
from gapfloor.errors import UsageError
from gapfloor.leftovers import temporary_folder
from gapfloor.levels import LevelSet
from gapfloor.records.store import Store

#: A distance of this many standard errors is clear. Larger than 2 because training is looked at many times.
CLEAR = 3.0

#: What receives the values of one measurement: names and numbers, and the training step.
Tracker = Callable[[Mapping[str, float], int], None]


class GapWarning(UserWarning):
    """Argmax is below the floor while sampling is above it."""


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
        levels: levels of each set that are played.
        probe: states per sampled cell that are cloned to measure merged entropy; 0: none. Only ProcGen can clone.
        log_to: TensorBoard writers (anything with `add_scalar`), runs of Weights & Biases or Trackio (anything with
            `log`), or functions of values and step.
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
        levels: int = 32,
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
        self._levels = _first_levels(train, levels), _first_levels(test, levels)
        self._trackers = [_tracker(target) for target in log_to]
        self._temporary = temporary_folder("store")
        self._floors = Path(self._temporary.name if store is None else store)
        self._settings: dict[str, Any] = {
            "game": game, "rules": self._rules, "mode": mode, "options": options, "probe": probe,
            "workers": workers, "progress": None,
        }  # fmt: skip
        self._next = self._every
        self._has_warned = False

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

    def _values(self, step: int, policy: Any) -> dict[str, float]:
        cells = {
            ("floor" if cell.reference else cell.rule, cell.level_set): cell
            for cell in self._play(policy, *self._levels, budget=str(step))
        }
        return _named(cells, self._rules)

    def _play(self, policy: Any, train: str, test: str, *, budget: str) -> tuple[CellRow, ...]:
        # A store of its own: weights that have not changed since the last time would be refused as a copy of a run.
        with temporary_folder("store") as folder:
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


def _named(cells: Mapping[tuple[str, str], CellRow], rules: Sequence[str]) -> dict[str, float]:
    """The values of one measurement under their names."""

    def difference(left: tuple[str, str], right: tuple[str, str]) -> tuple[float, float]:
        return cells[left].mean - cells[right].mean, math.hypot(cells[left].sem, cells[right].sem)

    values = {f"gapfloor/{rule}/{level_set}": cell.mean for (rule, level_set), cell in cells.items()}
    for rule in ("floor", *rules):
        gap = difference((rule, "train"), (rule, "test"))
        values[f"gapfloor/{rule}/gap"], values[f"gapfloor/{rule}/gap_sem"] = gap
    for rule in rules:
        above = difference((rule, "test"), ("floor", "test"))
        values[f"gapfloor/{rule}/above_floor"], values[f"gapfloor/{rule}/above_floor_sem"] = above
    sampled = [cell for (rule, _), cell in cells.items() if rule == "sampled"]
    for name in ("raw", "merged"):
        known = [value for cell in sampled if (value := getattr(cell, f"entropy_{name}")) is not None]
        if known and all(map(math.isfinite, known)):
            values[f"gapfloor/entropy/{name}"] = sum(known) / len(known)
    values["gapfloor/levels"] = float(cells["floor", "test"].n_episodes)
    return values


def _tracker(target: Any) -> Tracker:
    """A function that sends values to a tracker; Weights & Biases and Trackio share one interface."""
    if callable(getattr(target, "add_scalar", None)):

        def to_tensorboard(values: Mapping[str, float], step: int) -> None:
            for name, value in values.items():
                target.add_scalar(name, value, step)

        return to_tensorboard
    if callable(getattr(target, "log", None)):
        return lambda values, step: target.log(dict(values), step=step)
    if not callable(target):
        raise UsageError(
            f"{type(target).__name__} is not a tracker: give a TensorBoard writer, a run of Weights & Biases or "
            "Trackio, or a function of values and step."
        )
    return lambda values, step: target(values, step)


def _first_levels(text: str, levels: int) -> str:
    """The first levels of a set."""
    _at_least_one("levels", levels - 1)  # one level has no standard error
    known = LevelSet.parse(text)
    if known.n < levels:
        raise UsageError(f"levels={levels} is more than the level set {text} has ({known.n}): use fewer.")
    return f"{known.start}:{known.start + levels}"


def _at_least_one(name: str, value: int) -> int:
    if value < 1:
        raise UsageError(f"`{name}` is too small for a measurement: use a larger number.")
    return value
