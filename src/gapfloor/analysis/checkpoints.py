"""Single checkpoints against the floor on the same schedule: at a grid of temperatures, or over a run's training.

The rows are those of every analysis, with a coordinate: `at` is the temperature of a sweep, or the number of training
steps of a curve. Nothing is tested, because a single run says nothing about other runs of its agent. Errors and
intervals are over levels, paired with the floor, so they are about this checkpoint on new levels.

A sweep fixes game, weights and levels; only the sharpness of what is drawn from changes (softmax(logits / T): T = 1 is
the rule `sampled`, T = 0 the rule `greedy`). A training log reports the running mean of training episodes, which mixes
weights and counts episodes in the order in which they end; a curve has the value of the fixed checkpoint next to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gapfloor.analysis.rows import ComparisonRow, Decision, GapRow, RuleDifferenceRow
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.statistics.level_crossing import independent_difference, mean_by_level, pair_by_level
from gapfloor.tables.cells import estimate, p_value
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of

_NOT_TESTED = Decision(reason="1 run")
_THIS_CHECKPOINT = (
    "This is one checkpoint: errors and intervals take its levels as a sample, and nothing here is about other runs of "
    "the agent. Lowering the temperature also changes which states are visited."
)
_THESE_RUNS = (
    "All rows of a game share its floor: the floor's own error moves every delta by the same amount. Errors take "
    "these runs as given and their levels as a sample."
)


class Played(NamedTuple):
    """One checkpoint, played under one rule."""

    run: RunIdentity
    """The run, with the budget under which the checkpoint is filed."""
    rule: str
    at: float
    """The temperature of the rule, or the checkpoint's training steps."""
    samples: Mapping[str, EpisodeSample]
    """Level set -> episodes."""

    @property
    def labels(self) -> dict[str, Any]:
        """The fields that the rows of a checkpoint share, as keyword arguments."""
        named = {name: getattr(self.run, name) for name in ("game", "mode", "budget", "agent")}
        return named | {
            "rule": self.rule, "at": self.at, "n": 1, "seed": 0, "plan_hash": "", "status": "exploratory",
            "exploratory_reason": "no plan names single checkpoints",
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CheckpointRow(ComparisonRow):
    """One checkpoint on one level set against the floor, with errors over levels."""

    n_levels: int
    """Distinct levels played."""
    n_episodes: int
    """Counted episodes."""
    entropy_played: float
    """Nats; of the distribution that was drawn from, in the states that were visited."""
    entropy_raw: float
    """Nats; of the policy's own distribution in the same states."""
    is_one_action: bool
    """Whether one action was taken in nearly every visited state."""


@dataclass(frozen=True, kw_only=True)
class CheckpointSeries:
    """The rows of one run at several values of `at`."""

    floor_comparisons: tuple[CheckpointRow, ...]
    """One row per value of `at`, rule and level set, compared with the floor."""
    gaps: tuple[GapRow, ...]
    """One row per value of `at` and rule; empty where one level set was played."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules, in the order given."""
        return tuple(dict.fromkeys(row.rule for row in self.floor_comparisons))

    @property
    def level_sets(self) -> tuple[str, ...]:
        """The level sets that were played."""
        return tuple(dict.fromkeys(row.level_set for row in self.floor_comparisons))

    def on(self, level_set: str) -> list[CheckpointRow]:
        """The rows of a level set."""
        return [row for row in self.floor_comparisons if row.level_set == level_set]


def _series(points: Sequence[Played], floors: Mapping[str, EpisodeSample]) -> dict[str, Any]:
    """The rows of a series, as keyword arguments."""
    comparisons: list[CheckpointRow] = []
    gaps = []
    for played in points:
        rows: dict[str, CheckpointRow] = {}
        means = {}
        for name, sample in played.samples.items():
            mean, floor = (mean_by_level(each.returns, each.levels) for each in (sample, floors[name]))
            means[name] = mean
            rows[name] = CheckpointRow(
                **played.labels,
                level_set=name,
                mean=mean.value,
                sem=mean.se,
                floor=floor.value,
                floor_sem=floor.se,
                floor_n=floors[name].returns.size,
                delta=pair_by_level(sample.returns, floors[name].returns, sample.levels),
                decision=_NOT_TESTED,
                runs_above=int(mean.value > floor.value),
                n_levels=np.unique(sample.levels).size,
                n_episodes=sample.returns.size,
                entropy_played=sample.entropy_played,
                entropy_raw=sample.entropy_raw,
                is_one_action=sample.is_one_action,
            )
        comparisons += rows.values()
        if len(rows) == 2:
            train, test = means["train"], means["test"]
            gap = independent_difference(train, test)  # the levels of the two sets are independent
            gaps.append(
                GapRow(
                    **played.labels,
                    train=train.value,
                    train_sem=train.se,
                    test=test.value,
                    test_sem=test.se,
                    gap=gap.value,
                    gap_sem=gap.se,
                    estimate=gap,
                    decision=_NOT_TESTED,
                    floor_gap=rows["train"].floor - rows["test"].floor,
                    n_levels=(rows["train"].n_levels, rows["test"].n_levels),
                )
            )
    return {"floor_comparisons": tuple(comparisons), "gaps": tuple(gaps)}


class _SaysInJson(ReadableResult):
    """A result whose document has its sentences among the notes."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values: what the command prints with `--json`."""
        return {**super().to_dict(), "notes": [*self.sentences(), *self.notes]}


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep(CheckpointSeries, _SaysInJson):
    """A checkpoint at a grid of temperatures; `at` of a row is its temperature."""

    row_names = ("floor_comparisons", "gaps", "pairs")

    run: RunIdentity
    """The trained run."""
    design: str
    """How levels were chosen (draws or census), with slots, burn-in and episodes."""
    draws: tuple[int, ...]
    """Seeds of the level draws."""
    pairs: tuple[RuleDifferenceRow, ...]
    """One row per level set and temperature: its return minus that at the reference temperature, paired by level."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    @property
    def temperatures(self) -> tuple[float, ...]:
        """The grid, from cold to hot."""
        return tuple(dict.fromkeys(row.at for row in self.floor_comparisons if row.at is not None))

    def row(self, temperature: float, level_set: str) -> CheckpointRow:
        """The row of a temperature and level set."""
        return next(row for row in self.on(level_set) if row.at == temperature)

    def table(self) -> Table:
        """One row per temperature, the floor last; errors are clustered by level."""
        reference = self.pairs[0].rule_b
        pairs = {(row.at, str(row.quantity)): row.difference for row in self.pairs}
        lines: dict[float | None, dict[str, Any]] = {}
        floor: dict[str, Any] = {"rule": "uniform"}
        for row in self.floor_comparisons:
            name, pair = row.level_set, pairs[row.at, row.level_set]
            line = lines.setdefault(row.at, {"temperature": row.at, "rule": row.rule})
            line |= {f"entropy_{name}": row.entropy_played, name: row.mean, f"{name}_sem": row.sem}
            if row.rule != reference:
                line |= {f"difference_{name}": pair.value, f"difference_{name}_se": pair.se}
            floor |= {name: row.floor, f"{name}_sem": row.floor_sem}
        for gap in self.gaps:
            lines[gap.at] |= {"gap": gap.estimate.value, "gap_se": gap.estimate.se}
            floor |= {"gap": gap.floor_gap, "gap_se": None}
        return table_of("sweep", [*lines.values(), floor], heads={"REFERENCE": reference})

    def sentences(self) -> list[str]:
        """What the grid says, one sentence per level set, and what it cannot say."""
        said, fixed = [], []
        for name in self.level_sets:
            words = {"train": "Training levels", "test": "Held-out levels"}.get(name, f"Levels '{name}'")
            rows = self.on(name)
            means = [row.mean for row in sorted(rows, key=lambda row: row.entropy_played)]
            n_steps, n_falls = len(means) - 1, sum(after > before for before, after in pairwise(means))
            shape = f"return falls at {n_falls} of {n_steps} steps as entropy falls, so not monotonically"
            if n_falls in (0, n_steps):
                shape = f"return falls at {'every' if n_falls else 'no'} step as entropy falls"
            # From the coldest, or from the hottest where that is the reference.
            pairs = [row for row in self.pairs if row.quantity == name]
            far = pairs[0] if pairs[0].rule != pairs[0].rule_b else pairs[-1]
            found = far.difference
            difference = f"{estimate(-found.value, (-found.high, -found.low)).typed} ({found.confidence:.0%})"
            said.append(
                f"{words}: {shape}. {far.rule_b} - {far.rule}: {difference}, p = {p_value(found.p).plain}, paired over "
                f"{rows[0].n_levels} levels."
            )
            fixed += [
                f"{words}: {row.rule} took one action in nearly every visited state."
                for row in rows
                if row.is_one_action
            ]
        return [*said, *fixed, _THIS_CHECKPOINT]


def analyse_sweep(grid: Sequence[Played], floors: Mapping[str, EpisodeSample], **about: Any) -> Sweep:
    """What a checkpoint at a grid of temperatures says; all was played on the schedule of the floors.

    `about` are the other fields of `Sweep`.
    """
    reference = next((played for played in grid if played.at == 1.0), grid[-1])
    pairs = tuple(
        RuleDifferenceRow(
            **played.labels,
            rule_b=reference.rule,
            quantity=name,  # type: ignore[arg-type]
            difference=pair_by_level(sample.returns, reference.samples[name].returns, sample.levels),
        )
        for name in reference.samples
        for played in grid
        for sample in [played.samples[name]]
    )
    return Sweep(run=grid[0].run, pairs=pairs, **_series(grid, floors), **about)


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


@dataclass(frozen=True, kw_only=True)
class TrainingCurve(CheckpointSeries):
    """One run over its training; `at` of a row is the number of training steps."""

    name: str
    """Its name."""
    in_loop: tuple[InLoopPoint, ...]
    """The log's running mean at each fixed checkpoint."""
    in_loop_curve: tuple[tuple[int, float], ...]
    """Steps and running mean at every update of the log."""

    def sentences(self) -> list[str]:
        """What the log says next to the fixed checkpoints, and where one action was taken."""
        lines = []
        if self.in_loop:
            higher = sum(row.difference > 0 for row in self.in_loop)
            far = sum(abs(row.difference) > 2 * row.se for row in self.in_loop)
            reach = max(row.window_updates for row in self.in_loop)
            lines.append(
                f"{self.name}: the in-loop mean is higher than the fixed checkpoint on the same training levels at "
                f"{higher} of {len(self.in_loop)} checkpoints, and more than two standard errors away at {far}; its "
                f"window holds episodes of up to {reach} updates' weights."
            )
        elif "sampled" in self.rules:
            lines.append(f"{self.name}: there is no training log, so there is no in-loop mean to compare.")
        for rule in self.rules:
            flagged = [row.at for row in self.floor_comparisons if row.rule == rule and row.is_one_action]
            if same := [f"{steps:,}" for steps in dict.fromkeys(flagged)]:
                lines.append(
                    f"{self.name}, {rule}: one action in nearly every visited state at {', '.join(same)} steps."
                )
        return lines


@dataclass(frozen=True, repr=False)
class TrainingCurves(_SaysInJson):
    """The curves of one or more runs."""

    row_names = ("gaps", "floor_comparisons", "in_loop")

    curves: tuple[TrainingCurve, ...]
    """One entry per run."""
    design: str
    """How levels were chosen (draws or census), with slots, burn-in and episodes."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    def json_rows(self, name: str) -> list[dict[str, Any]]:
        """Gaps, comparisons or in-loop means of all runs, each with the run's name."""
        return [{"run": curve["name"], **row} for curve in self.to_dict()["curves"] for row in curve[name]]

    def table(self) -> Table:
        """One row per checkpoint and rule; the in-loop mean is given in the sampled rows."""
        rows = []
        for curve in self.curves:
            logged: dict[float | None, InLoopPoint] = {row.steps: row for row in curve.in_loop}
            deltas = {(row.at, row.rule): row.delta for row in curve.on("test")}
            for gap in curve.gaps:
                delta = deltas[gap.at, gap.rule]
                row: dict[str, Any] = {
                    "run": curve.name, "steps": gap.at, "delta": delta.value, "delta_se": delta.se,
                    **{name: getattr(gap, name) for name in _SHOWN},
                }  # fmt: skip
                if gap.rule == "sampled" and (log := logged.get(gap.at)):
                    row |= {"in_loop": log.in_loop, "difference": log.difference, "difference_se": log.se}
                rows.append(row)
        return table_of("training_curve", rows)

    def sentences(self) -> list[str]:
        """What was found, a few sentences per run."""
        return [*(line for curve in self.curves for line in curve.sentences()), _THESE_RUNS]


#: Fields of a gap that its line of the table shows.
_SHOWN = ("rule", "train", "train_sem", "test", "test_sem", "gap", "gap_sem")


def analyse_curve(
    checkpoints: Sequence[Played], floors: Mapping[str, EpisodeSample], log: Sequence[Any], *, name: str
) -> TrainingCurve:
    """The curve of one run from its checkpoints, in the order of their steps, and its log (`History.log`)."""
    logged = {row.steps: row for row in log if row.n_episodes}
    in_loop = []
    for played in checkpoints:
        if played.rule == "sampled" and played.at in logged:
            returns, row = played.samples["train"].returns, logged[played.at]
            spread = float(np.std(returns, ddof=1)) if returns.size > 1 else math.nan
            error, mean = spread / math.sqrt(returns.size), float(np.mean(returns))
            in_loop.append(
                InLoopPoint(
                    steps=row.steps,
                    in_loop=row.episode_return,
                    window_episodes=row.n_episodes,
                    window_updates=row.n_updates,
                    fixed=mean,
                    fixed_sem=error,
                    difference=row.episode_return - mean,
                    se=math.hypot(error, spread / math.sqrt(row.n_episodes)),
                )
            )
    return TrainingCurve(
        name=name,
        in_loop=tuple(in_loop),
        in_loop_curve=tuple((row.steps, row.episode_return) for row in logged.values()),
        **_series(checkpoints, floors),
    )


def rule_at(temperature: float) -> str:
    """The rule under which a temperature is filed.

    >>> rule_at(0), rule_at(0.25), rule_at(1)
    ('greedy', 'temperature:0.25', 'sampled')
    """
    return {0.0: "greedy", 1.0: "sampled"}.get(float(temperature), f"temperature:{temperature:g}")
