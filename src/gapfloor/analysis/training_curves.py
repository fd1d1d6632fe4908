"""Gap and distance from the floor over a run's training, and the in-loop mean next to them.

A training log reports the running mean of training episodes. It mixes weights (the window covers several updates) and
counts episodes in the order in which they end; the value of a fixed checkpoint on the same training levels has neither
fault. This module compares both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.analysis.checkpoint_rows import (
    CheckpointRow,
    checkpoint_gap,
    checkpoint_labels,
    checkpoint_row,
)
from gapfloor.analysis.rows import GapRow
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.registry import table_of
from gapfloor.tables.table import Table


@dataclass(frozen=True)
class PlayedCheckpoint:
    """One checkpoint of a run, as it was played."""

    run: RunIdentity
    """The run, with the budget under which the checkpoint is filed."""
    steps: int
    """Environment steps of training."""
    samples: Mapping[tuple[str, str], EpisodeSample]
    """(rule, level set) -> episodes."""


@dataclass(frozen=True)
class InLoopPoint:
    """The log's running mean compared with the fixed checkpoint, sampled, on the same training levels."""

    steps: int
    """Environment steps of training."""
    in_loop: float
    """Mean of the log's last training episodes, over changing weights."""
    window_episodes: int
    """Training episodes behind the in-loop mean."""
    window_updates: int
    """Updates of the weights during those episodes."""
    fixed: float
    """Return of the fixed checkpoint, sampled, on the same training levels."""
    fixed_sem: float
    """Per episode: the estimand is these training levels, from which both draw."""
    difference: float
    """In-loop minus fixed."""
    se: float
    """Of the difference: the log keeps no spread, so the fixed checkpoint's is taken for the window's episodes too."""


@dataclass(frozen=True)
class TrainingCurve:
    """One run over its training; `at` of a row is the number of training steps."""

    name: str
    """Its name."""
    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    rules: tuple[str, ...]
    """The rules, in the order given."""
    gaps: tuple[GapRow, ...]
    """One row per checkpoint and rule."""
    floor_comparisons: tuple[CheckpointRow, ...]
    """One row per checkpoint, rule and level set, compared with the floor."""
    in_loop: tuple[InLoopPoint, ...]
    """The log's running mean at each fixed checkpoint."""
    in_loop_curve: tuple[tuple[int, float], ...]
    """Steps and running mean at every update of the log."""


@dataclass(frozen=True, repr=False)
class TrainingCurves(ReadableResult):
    """The curves of one or more runs."""

    row_names = ("gaps", "floor_comparisons", "in_loop")

    curves: tuple[TrainingCurve, ...]
    """One entry per run."""
    design: str
    """How levels were chosen (draws or census), with slots, burn-in and episodes."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor training-curve --json` prints."""
        return {**super().to_dict(), "notes": [*self.sentences(), *self.notes]}

    def json_rows(self, name: str) -> list[dict[str, Any]]:
        """Gaps, comparisons or in-loop means of all runs, each with the run's name."""
        return [
            {"run": curve["name"], "game": curve["game"], "mode": curve["mode"], **row}
            for curve in self.to_dict()["curves"]
            for row in curve[name]
        ]

    def table(self) -> Table:
        """One row per checkpoint and rule; the in-loop mean is given in the sampled rows."""
        rows = []
        for curve in self.curves:
            logged: dict[float | None, InLoopPoint] = {row.steps: row for row in curve.in_loop}
            deltas = {
                (row.at, row.rule): row.delta for row in curve.floor_comparisons if row.level_set == "test"
            }
            for gap in curve.gaps:
                delta = deltas[gap.at, gap.rule]
                row: dict[str, Any] = {
                    "run": curve.name, "steps": gap.at, "delta": delta.value, "delta_se": delta.se,
                    **{name: getattr(gap, name) for name in _SHOWN},
                }  # fmt: skip
                if gap.rule == "sampled" and (in_loop := logged.get(gap.at)):
                    row |= {
                        "in_loop": in_loop.in_loop,
                        "difference": in_loop.difference,
                        "difference_se": in_loop.se,
                    }
                rows.append(row)
        return table_of("training_curve", rows)

    def sentences(self) -> list[str]:
        """What was found, a few sentences per run."""
        return [*(line for curve in self.curves for line in _sentences(curve)), _SCOPE]


#: Fields of a gap that its line of the table shows.
_SHOWN = ("rule", "train", "train_sem", "test", "test_sem", "gap", "gap_sem")
_SCOPE = (
    "All rows of a game share its floor: the floor's own error moves every delta by the same amount. Errors take "
    "these runs as given and their levels as a sample."
)


def analyse_curve(
    checkpoints: Sequence[PlayedCheckpoint],
    floors: Mapping[str, EpisodeSample],
    log: Sequence[Any],
    *,
    name: str,
) -> TrainingCurve:
    """The curve of one run from its checkpoints, in the order of their steps, and its log (`History.log`)."""
    rules = tuple(dict.fromkeys(rule for rule, _ in checkpoints[0].samples))
    logged = {row.steps: row for row in log if row.n_episodes}
    gaps, comparisons, in_loop = [], [], []
    for checkpoint in checkpoints:
        for rule in rules:
            labels = checkpoint_labels(checkpoint.run, rule=rule, at=checkpoint.steps)
            halves = {name: checkpoint.samples[rule, name] for name in ("train", "test")}
            gaps.append(
                checkpoint_gap(labels, halves["train"], halves["test"], (floors["train"], floors["test"]))
            )
            comparisons += [
                checkpoint_row(labels, sample, floors[name], level_set=name)
                for name, sample in halves.items()
            ]
            if rule == "sampled" and checkpoint.steps in logged:
                row = logged[checkpoint.steps]
                in_loop.append(
                    _in_loop_point(
                        halves["train"], row.episode_return, row.n_episodes, row.n_updates, row.steps
                    )
                )
    return TrainingCurve(
        name=name,
        game=checkpoints[0].run.game,
        mode=checkpoints[0].run.mode,
        rules=rules,
        gaps=tuple(gaps),
        floor_comparisons=tuple(comparisons),
        in_loop=tuple(in_loop),
        in_loop_curve=tuple((row.steps, row.episode_return) for row in log if row.n_episodes),
    )


def _in_loop_point(
    fixed: EpisodeSample, in_loop: float, n_window: int, n_updates: int, steps: int
) -> InLoopPoint:
    spread = float(np.std(fixed.returns, ddof=1)) if fixed.returns.size > 1 else math.nan
    sem = spread / math.sqrt(fixed.returns.size)
    mean = float(np.mean(fixed.returns))
    se = math.hypot(sem, spread / math.sqrt(n_window))
    return InLoopPoint(steps, in_loop, n_window, n_updates, mean, sem, in_loop - mean, se)


def _sentences(curve: TrainingCurve) -> list[str]:
    lines = []
    if curve.in_loop:
        higher = sum(row.difference > 0 for row in curve.in_loop)
        far = sum(abs(row.difference) > 2 * row.se for row in curve.in_loop)
        reach = max(row.window_updates for row in curve.in_loop)
        lines.append(
            f"{curve.name}: the in-loop mean is higher than the fixed checkpoint on the same training levels at "
            f"{higher} of {len(curve.in_loop)} checkpoints, and more than two standard errors away at {far}; its "
            f"window holds episodes of up to {reach} updates' weights."
        )
    elif "sampled" in curve.rules:
        lines.append(f"{curve.name}: there is no training log, so there is no in-loop mean to compare.")
    for rule in curve.rules:
        flagged = [row.at for row in curve.floor_comparisons if row.rule == rule and row.is_one_action]
        same = [f"{steps:,}" for steps in dict.fromkeys(flagged)]
        if same:
            lines.append(
                f"{curve.name}, {rule}: one action in nearly every visited state at {', '.join(same)} steps."
            )
    return lines
