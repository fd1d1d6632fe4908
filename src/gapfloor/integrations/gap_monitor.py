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

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.evaluation import CellRow
from gapfloor.api.evaluate import evaluate
from gapfloor.engines.global_random_state import kept_random_states
from gapfloor.errors import UsageError
from gapfloor.levels.schedule import LevelSet

#: A distance of this many standard errors is clear. Larger than 2 because training is looked at many times.
CLEAR = 3.0


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
        log_to: TensorBoard writers (anything with `add_scalar`), runs of Weights & Biases or Trackio (anything with
            `log`), or functions of values and step.
        settings: further arguments of `gapfloor.evaluate`, e.g. mode, workers, or probe (only ProcGen can clone).
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
        log_to: Sequence[Any] = (),
        **settings: Any,
    ) -> None:
        # One level has no standard error.
        for name, value, least in (("every", every, 1), ("levels", levels, 2)):
            if value < least:
                raise UsageError(f"`{name}` is {value}: use at least {least}.")
        for target in log_to:
            if not (callable(target) or hasattr(target, "add_scalar") or hasattr(target, "log")):
                raise UsageError(
                    f"{type(target).__name__} is not a tracker: give a TensorBoard writer, a run of Weights & Biases "
                    "or Trackio, or a function of values and step."
                )
        self.readings: list[GapReading] = []
        self._every = self._next = every
        self._rules, self._log_to = tuple(rules), log_to
        # Without a store: weights that have not changed since the last time would be refused as a copy of a run.
        self._settings: dict[str, Any] = dict(
            game=game, rules=self._rules, train=_first_levels(train, levels), test=_first_levels(test, levels),
            design="census", seeds=[0], agent="training", store=None, progress=None, **settings,
        )  # fmt: skip
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
        with kept_random_states():
            measured = evaluate(policy, budget=str(step), **self._settings)
        cells = {("floor" if cell.reference else cell.rule, cell.level_set): cell for cell in measured.cells}
        values = _named(cells, self._rules)
        reading = GapReading(step, values, time.perf_counter() - started)
        self.readings.append(reading)
        for target in self._log_to:
            _log(target, values, step)
        self._warn(values)
        return reading

    def _warn(self, values: Mapping[str, float]) -> None:
        if self._has_warned or not {"sampled", "greedy"} <= set(self._rules):
            return
        sampled, greedy = (
            values[f"gapfloor/{rule}/above_floor"] / max(values[f"gapfloor/{rule}/above_floor_sem"], 1e-12)
            for rule in ("sampled", "greedy")
        )
        if sampled >= CLEAR and greedy <= -CLEAR:
            self._has_warned = True
            means = {name: values[f"gapfloor/{name}/test"] for name in ("greedy", "floor", "sampled")}
            warnings.warn(
                f"On held-out levels the greedy policy is below the floor ({means['greedy']:.2f} against "
                f"{means['floor']:.2f}) and the sampled policy is above it ({means['sampled']:.2f}): the result "
                "depends on the rule, so state it.",
                GapWarning,
                stacklevel=3,
            )


def _named(cells: Mapping[tuple[str, str], CellRow], rules: Sequence[str]) -> dict[str, float]:
    """The values of one measurement under their names."""
    values = {f"gapfloor/{rule}/{level_set}": cell.mean for (rule, level_set), cell in cells.items()}

    def put_difference(name: str, left: tuple[str, str], right: tuple[str, str]) -> None:
        one, other = cells[left], cells[right]
        values[f"gapfloor/{name}"] = one.mean - other.mean
        values[f"gapfloor/{name}_sem"] = math.hypot(one.sem, other.sem)

    for rule in ("floor", *rules):
        put_difference(f"{rule}/gap", (rule, "train"), (rule, "test"))
    for rule in rules:
        put_difference(f"{rule}/above_floor", (rule, "test"), ("floor", "test"))
    sampled = [cell for (rule, _), cell in cells.items() if rule == "sampled"]
    for name in ("raw", "merged"):
        known = [value for cell in sampled if (value := getattr(cell, f"entropy_{name}")) is not None]
        if known and all(map(math.isfinite, known)):
            values[f"gapfloor/entropy/{name}"] = sum(known) / len(known)
    values["gapfloor/levels"] = float(cells["floor", "test"].n_episodes)
    return values


def _log(target: Any, values: Mapping[str, float], step: int) -> None:
    """Send values to a tracker; Weights & Biases and Trackio share one interface."""
    if hasattr(target, "add_scalar"):
        for name, value in values.items():
            target.add_scalar(name, value, step)
    elif hasattr(target, "log"):
        target.log(dict(values), step=step)
    else:
        target(values, step)


def _first_levels(text: str, levels: int) -> str:
    """The first levels of a set."""
    known = LevelSet.parse(text)
    if known.n < levels:
        raise UsageError(f"levels={levels} is more than the level set {text} has ({known.n}): use fewer.")
    return f"{known.start}:{known.start + levels}"
