"""Experiment trackers: TensorBoard, Weights & Biases, Trackio, or any function.

Weights & Biases and Trackio share one interface (`log(values, step=...)`), so neither is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gapfloor.errors import UsageError

#: What receives the values of one measurement: names and numbers, and the training step.
Tracker = Callable[[Mapping[str, float], int], None]


def tracker_for(target: Any) -> Tracker:
    """A function that sends values to `target`.

    Args:
        target: a TensorBoard `SummaryWriter` (anything with `add_scalar`), a run or module of Weights & Biases or
            Trackio (anything with `log`), or a function of values and step.

    >>> seen = []
    >>> tracker_for(lambda values, step: seen.append((step, dict(values))))({"gapfloor/levels": 16.0}, 1000)
    >>> seen
    [(1000, {'gapfloor/levels': 16.0})]
    """
    if callable(getattr(target, "add_scalar", None)):

        def to_tensorboard(values: Mapping[str, float], step: int) -> None:
            for name, value in values.items():
                target.add_scalar(name, value, step)

        return to_tensorboard
    if callable(getattr(target, "log", None)):
        return lambda values, step: target.log(dict(values), step=step)
    if callable(target):
        return lambda values, step: target(values, step)
    raise UsageError(
        f"{type(target).__name__} is not a tracker: give a TensorBoard writer, a run of Weights & Biases or Trackio, "
        "or a function of values and step."
    )
