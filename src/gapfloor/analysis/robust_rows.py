"""The robust estimators of floor comparisons and gaps, which are reported next to the paper's columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gapfloor.analysis.floor_results import FloorComparisonResult, RobustFloorEstimates
from gapfloor.analysis.gap_results import GapResult, RobustGapEstimates
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.statistics.aggregate import probability_of_improvement, summarise_iqm
from gapfloor.statistics.clustered import (
    clustered_sem,
    crossed_gap,
    crossed_mean,
    level_matrix,
    level_variance_share,
)
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.detectable import equivalence_unreachable, minimum_detectable_effect
from gapfloor.statistics.families import FamilyCall
from gapfloor.statistics.floor import FloorComparison
from gapfloor.statistics.gaps import Gap
from gapfloor.statistics.random_effects import random_effects_mean
from gapfloor.statistics.reference_calls import call_reference_family, compare_strata_to_reference
from gapfloor.statistics.signflip import sign_flip_test


def robust_floor_estimates(
    context: PlannedStudy,
    found: FloorComparison,
    runs: dict[RunName, RunSample],
    floor: RunSample,
    *,
    rng: np.random.Generator,
) -> RobustFloorEstimates:
    """Every robust estimate of a floor comparison except those that depend on its family."""
    named = sorted(runs.items())
    samples = [sample for _, sample in named]
    values = np.array([sample.mean for sample in samples])
    # The order of these draws from `rng` is part of the results.
    flip = sign_flip_test(values - floor.mean, rng=rng)
    iqm = summarise_iqm(values, rng=rng, **context.resampling)
    improvement = probability_of_improvement(
        [sample.returns for sample in samples], floor.returns, rng=rng, **context.resampling
    )
    estimates = RobustFloorEstimates(
        sign_flip=flip,
        floor_sem_clustered=clustered_sem(floor.returns, floor.levels) if floor.levels.size else NAN,
        equivalence_unreachable=equivalence_unreachable(
            margin=found.margin,
            floor_sem=found.floor_sem,
            floor_n=found.floor_n,
            alpha=context.plan.floor.alpha,
        ),
        iqm=iqm,
        improvement=improvement,
    )
    return _with_levels_of_floor(context, estimates, samples, floor)


def _means_by_agent(runs: dict[RunName, RunSample]) -> list[list[float]]:
    by_agent: dict[str, list[float]] = {}
    for name, sample in sorted(runs.items()):
        by_agent.setdefault(name.agent, []).append(sample.mean)
    return list(by_agent.values())


def _with_levels_of_floor(
    context: PlannedStudy,
    estimates: RobustFloorEstimates,
    samples: Sequence[RunSample],
    floor: RunSample,
) -> RobustFloorEstimates:
    """Add what is estimated for the generator of levels, where enough levels were played by all runs and the floor."""
    pairs = [(sample.returns, sample.levels) for sample in samples]
    against = (floor.returns, floor.levels)
    played = level_matrix(pairs, floor=against)
    equal = level_matrix(pairs, floor=against, equal_weights=True)
    if played is None or equal is None:
        return estimates
    confidence = context.plan.intervals.confidence
    return dataclasses.replace(
        estimates,
        crossed=crossed_mean(played, confidence=confidence),
        level_paired=crossed_mean(equal, confidence=confidence),
        level_variance_share=level_variance_share(pairs),
    )


def complete_family(
    context: PlannedStudy, rows: Sequence[FloorComparisonResult]
) -> tuple[FloorComparisonResult, ...]:
    """Add what depends on the family: the call with agents as strata and the smallest effect that Holm lets through."""
    alpha = context.plan.floor.alpha
    completed = []
    for row, strata in zip(rows, _strata_calls(context, rows), strict=True):
        robust = dataclasses.replace(
            row.robust,
            strata=strata,
            minimum_detectable=minimum_detectable_effect(
                se=row.test.se, df=row.test.df, alpha=alpha, family_size=row.decision.family_size
            ),
        )
        completed.append(dataclasses.replace(row, robust=robust))
    return tuple(completed)


def _strata_calls(context: PlannedStudy, rows: Sequence[FloorComparisonResult]) -> list[FamilyCall | None]:
    """The recommended calls of a family with agents as strata; None where they cannot be tested."""
    if any(row.agent is not None or row.reference != context.plan.floor.reference for row in rows):
        return [None] * len(rows)
    tests = []
    for row in rows:
        runs = context.study.runs(row.game, row.mode, row.budget, row.rule, row.level_set)
        floor = context.floor(row.game, row.mode, row.budget, row.level_set)
        assert floor is not None  # the row has been compared with it
        # Copies of a run say nothing about the spread between runs.
        distinct = context.distinct(runs, game=row.game, mode=row.mode, budget=row.budget)
        tests.append(
            compare_strata_to_reference(
                _means_by_agent(distinct),
                floor.units,
                margin=context.margin,
                least_runs=context.plan.least_runs,
            )
        )
    return [
        None if one.call == "not tested" else FamilyCall(one.p_holm, one.call, one.family_size)
        for one in call_reference_family(tests, alpha=context.plan.floor.alpha)
    ]


def robust_gap_estimates(
    context: PlannedStudy,
    found: Gap,
    both: Sequence[tuple[RunSample, RunSample]],
    *,
    rng: np.random.Generator,
) -> RobustGapEstimates:
    """Every robust estimate of a gap except those that depend on its family."""
    confidence = context.plan.intervals.confidence
    gaps = np.array([run.gap for run in found.runs])
    variances = [
        sum(half.level_units.var(ddof=1) / half.level_units.size for half in (train, test))
        for train, test in both
    ]
    estimates = RobustGapEstimates(
        sign_flip=sign_flip_test(gaps, rng=rng),
        random_effects=random_effects_mean(gaps, variances, confidence=confidence),
    )
    return _with_levels_of_gap(context, estimates, both)


def _with_levels_of_gap(
    context: PlannedStudy,
    estimates: RobustGapEstimates,
    both: Sequence[tuple[RunSample, RunSample]],
) -> RobustGapEstimates:
    """Add what is estimated for the generator of levels, where all runs share at least two levels."""
    trains = [(train.returns, train.levels) for train, _ in both]
    tests = [(test.returns, test.levels) for _, test in both]
    train, test = level_matrix(trains), level_matrix(tests)
    if train is None or test is None or len(both) < 2:
        return estimates
    return dataclasses.replace(
        estimates,
        crossed=crossed_gap(train, test, confidence=context.plan.intervals.confidence),
        level_variance_share=level_variance_share([*trains, *tests]),
    )


def complete_gap_family(context: PlannedStudy, row: GapResult) -> GapResult:
    """Add the smallest gap over runs that the family's hardest Holm step would let through."""
    smallest = minimum_detectable_effect(
        se=row.gap.sem, df=row.n - 1, alpha=context.plan.floor.alpha, family_size=row.family_size
    )
    return dataclasses.replace(row, robust=dataclasses.replace(row.robust, minimum_detectable=smallest))
