"""Rows about one checkpoint at one temperature or training step, with its levels as the sample.

Nothing is tested: a single run says nothing about other runs of its agent. Errors and intervals are over levels, paired
with the floor where both played the same schedule, so they are about this checkpoint on new levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.analysis.rows import ComparisonRow, Decision, Estimate, GapRow
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.statistics.clustered import independent_difference, mean_by_level, pair_by_level

_NOT_TESTED = Decision(reason="1 run")


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


def checkpoint_labels(run: RunIdentity, *, rule: str, at: float) -> dict[str, Any]:
    """The fields that the rows of a checkpoint share, as keyword arguments."""
    return {
        "game": run.game, "mode": run.mode, "budget": run.budget, "agent": run.agent, "rule": rule, "at": at, "n": 1,
        "seed": 0, "plan_hash": "", "status": "exploratory",
        "exploratory_reason": "no plan names single checkpoints",
    }  # fmt: skip


def checkpoint_row(
    labels: dict[str, Any], sample: EpisodeSample, floor: EpisodeSample, *, level_set: str
) -> CheckpointRow:
    """Return and floor on one level set, played on the same schedule."""
    mean, reference = _mean(sample), _mean(floor)
    return CheckpointRow(
        **labels,
        level_set=level_set,
        mean=mean.value,
        sem=mean.se,
        floor=reference.value,
        floor_sem=reference.se,
        floor_n=floor.returns.size,
        delta=pair_by_level(sample.returns, floor.returns, sample.levels),
        decision=_NOT_TESTED,
        runs_above=int(mean.value > reference.value),
        n_levels=n_levels(sample),
        n_episodes=sample.returns.size,
        entropy_played=sample.entropy_played,
        entropy_raw=sample.entropy_raw,
        is_one_action=sample.is_one_action,
    )


def checkpoint_gap(
    labels: dict[str, Any],
    train: EpisodeSample,
    test: EpisodeSample,
    floors: tuple[EpisodeSample, EpisodeSample],
) -> GapRow:
    """Train - test; levels of the two sets are independent."""
    halves = (_mean(train), _mean(test))
    gap = independent_difference(*halves)
    return GapRow(
        **labels,
        train=halves[0].value,
        train_sem=halves[0].se,
        test=halves[1].value,
        test_sem=halves[1].se,
        gap=gap.value,
        gap_sem=gap.se,
        estimate=gap,
        decision=_NOT_TESTED,
        floor_gap=_mean(floors[0]).value - _mean(floors[1]).value,
        n_levels=(n_levels(train), n_levels(test)),
    )


def n_levels(sample: EpisodeSample) -> int:
    """Distinct levels of a sample."""
    return int(np.unique(sample.levels).size)


def _mean(sample: EpisodeSample) -> Estimate:
    return mean_by_level(sample.returns, sample.levels)
