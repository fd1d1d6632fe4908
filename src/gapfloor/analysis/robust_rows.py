"""The estimators that stand beside the paper's columns, filled in for floor comparisons and gaps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gapfloor.analysis.grouping import RunName, Sample
from gapfloor.analysis.results import FloorBeside, FloorComparisonResult, GapBeside, GapResult
from gapfloor.analysis.row_context import Context
from gapfloor.statistics.aggregate import probability_of_improvement, summarise_iqm
from gapfloor.statistics.clustered import (
    clustered_sem,
    crossed_gap,
    crossed_mean,
    level_matrix,
    level_variance_share,
    pigeonhole_se,
)
from gapfloor.statistics.conventions import NAN, NO_PAIR
from gapfloor.statistics.detectable import equivalence_unreachable, minimum_detectable_effect
from gapfloor.statistics.excess import compare_to_floor_stratified, floor_excess_gap
from gapfloor.statistics.families import holm, make_call
from gapfloor.statistics.floor import FloorComparison
from gapfloor.statistics.gaps import Gap
from gapfloor.statistics.random_effects import random_effects_mean
from gapfloor.statistics.signflip import sign_flip_test
from gapfloor.statistics.welch import t_interval, two_sided_p

#: The pigeonhole bootstrap checks a standard error; so many resamples know it to 2%.
_PIGEONHOLES = 1000


def floor_beside(
    context: Context,
    found: FloorComparison,
    runs: dict[RunName, Sample],
    floor: Sample,
    *,
    rng: np.random.Generator,
) -> FloorBeside:
    """Everything beside a floor comparison but what its family decides."""
    samples = sorted(runs.items())
    values = np.array([sample.mean for _, sample in samples])
    tested = found.n > 1
    confidence = context.plan.intervals.confidence
    flip = sign_flip_test(values - floor.mean, rng=rng)
    iqm = summarise_iqm(values, rng=rng, **context.resampling)
    better = probability_of_improvement(
        [sample.returns for _, sample in samples], floor.returns, rng=rng, **context.resampling
    )
    beside = FloorBeside(
        t_interval=t_interval(found.delta, found.se, found.df, confidence=confidence) if tested else NO_PAIR,
        p_sign_flip=flip.p,
        p_sign_flip_smallest=flip.smallest,
        floor_sem_clustered=clustered_sem(floor.returns, floor.levels) if floor.levels.size else NAN,
        equivalence_unreachable=equivalence_unreachable(
            margin=found.margin,
            floor_sem=found.floor_sem,
            floor_n=found.floor_n,
            alpha=context.plan.floor.alpha,
        ),
        iqm=iqm.value,
        iqm_ci=iqm.ci,
        p_improvement=better.value,
        p_improvement_ci=better.ci,
    )
    beside = _stratified(context, beside, samples, floor)
    return _floor_generator(context, beside, [s for _, s in samples], floor, rng=rng)


def _stratified(
    context: Context, beside: FloorBeside, samples: Sequence[tuple[RunName, Sample]], floor: Sample
) -> FloorBeside:
    by_agent: dict[str, list[float]] = {}
    for name, sample in samples:
        by_agent.setdefault(name.agent, []).append(sample.mean)
    found = compare_to_floor_stratified(list(by_agent.values()), floor.units, margin=context.margin)
    return dataclasses.replace(
        beside, stratified_se=found.se, stratified_p=found.p, stratified_p_tost=found.p_tost
    )


def _floor_generator(
    context: Context,
    beside: FloorBeside,
    samples: Sequence[Sample],
    floor: Sample,
    *,
    rng: np.random.Generator,
) -> FloorBeside:
    pairs = [(sample.returns, sample.levels) for sample in samples]
    against = (floor.returns, floor.levels)
    played = level_matrix(pairs, floor=against)
    equal = level_matrix(pairs, floor=against, equal_weights=True)
    if played is None or equal is None:
        return beside
    confidence = context.plan.intervals.confidence
    crossed = crossed_mean(played, confidence=confidence)
    paired = crossed_mean(equal, confidence=confidence)
    return dataclasses.replace(
        beside,
        crossed_se=crossed.se,
        crossed_df=crossed.df,
        crossed_p=crossed.p,
        crossed_interval=crossed.interval,
        level_variance_share=level_variance_share(pairs),
        pigeonhole_se=pigeonhole_se([played], [1.0], n_resamples=_PIGEONHOLES, rng=rng)
        if len(samples) > 1
        else NAN,
        level_paired_delta=paired.estimate,
        level_paired_se=paired.se,
        level_paired_p=paired.p,
    )


def complete_family(
    context: Context, rows: Sequence[FloorComparisonResult]
) -> tuple[FloorComparisonResult, ...]:
    """What depends on the family: the stratified call and the smallest effect that Holm lets through."""
    adjusted = holm([row.beside.stratified_p for row in rows])
    completed = []
    for row, p in zip(rows, adjusted, strict=True):
        beside = row.beside
        call = None
        if not np.isnan(beside.stratified_p):
            call = make_call(row.delta, float(p), beside.stratified_p_tost, alpha=context.plan.floor.alpha)
        smallest = minimum_detectable_effect(
            se=float(np.hypot(row.sem, row.floor_sem)),
            df=row.df,
            alpha=context.plan.floor.alpha,
            family_size=row.family_size,
        )
        beside = dataclasses.replace(
            beside, stratified_p_holm=float(p), stratified_call=call, minimum_detectable=smallest
        )
        completed.append(dataclasses.replace(row, beside=beside))
    return tuple(completed)


def gap_beside(
    context: Context,
    found: Gap,
    both: Sequence[tuple[Sample, Sample]],
    floors: tuple[Sample | None, Sample | None],
    *,
    rng: np.random.Generator,
) -> GapBeside:
    """Everything beside a gap but what its family decides."""
    confidence = context.plan.intervals.confidence
    gaps = np.array([run.gap for run in found.runs])
    flip = sign_flip_test(gaps, rng=rng)
    variances = [
        sum(half.level_units.var(ddof=1) / half.level_units.size for half in (train, test))
        for train, test in both
    ]
    effects = random_effects_mean(gaps, variances, confidence=confidence)
    beside = GapBeside(
        p_sign_flip=flip.p,
        p_sign_flip_smallest=flip.smallest,
        random_effects_mean=effects.mean,
        random_effects_interval=effects.interval,
        random_effects_tau=effects.tau,
        prediction_interval=effects.prediction,
    )
    if found.n > 1:
        t = found.gap / found.sem if found.sem > 0 else NAN
        beside = dataclasses.replace(
            beside,
            t_interval=t_interval(found.gap, found.sem, found.n - 1, confidence=confidence),
            p_t=float(two_sided_p(t, found.n - 1)),
        )
    train_floor, test_floor = floors
    if train_floor is not None and test_floor is not None:
        excess = floor_excess_gap(gaps, train_floor.units, test_floor.units, confidence=confidence)
        beside = dataclasses.replace(
            beside,
            floor_gap=excess.floor_gap,
            floor_gap_se=excess.floor_gap_se,
            excess=excess.excess,
            excess_se=excess.se,
            excess_df=excess.df,
            excess_p=excess.p,
            excess_interval=excess.interval,
        )
    return _gap_generator(context, beside, both, rng=rng)


def _gap_generator(
    context: Context,
    beside: GapBeside,
    both: Sequence[tuple[Sample, Sample]],
    *,
    rng: np.random.Generator,
) -> GapBeside:
    trains = [(train.returns, train.levels) for train, _ in both]
    tests = [(test.returns, test.levels) for _, test in both]
    train, test = level_matrix(trains), level_matrix(tests)
    if train is None or test is None or len(both) < 2:
        return beside
    crossed = crossed_gap(train, test, confidence=context.plan.intervals.confidence)
    return dataclasses.replace(
        beside,
        crossed_se=crossed.se,
        crossed_df=crossed.df,
        crossed_p=crossed.p,
        crossed_interval=crossed.interval,
        level_variance_share=level_variance_share([*trains, *tests]),
        pigeonhole_se=pigeonhole_se([train, test], [1.0, -1.0], n_resamples=_PIGEONHOLES, rng=rng),
    )


def complete_gap_family(context: Context, row: GapResult) -> GapResult:
    """The smallest gap over runs that the family's hardest Holm step would let through."""
    smallest = minimum_detectable_effect(
        se=row.sem, df=row.n - 1, alpha=context.plan.floor.alpha, family_size=row.family_size
    )
    return dataclasses.replace(row, beside=dataclasses.replace(row.beside, minimum_detectable=smallest))
