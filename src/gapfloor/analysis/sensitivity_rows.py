"""What other estimators and assumptions say about the pooled comparisons with the floor and about the gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gapfloor.analysis.floor_rows import RunsAndReference
from gapfloor.analysis.gap_rows import GapHalves
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import Quantity, SensitivityRow
from gapfloor.statistics.clustered import (
    clustered_sem,
    crossed_gap,
    crossed_mean,
    level_matrix,
    level_variance_share,
)
from gapfloor.statistics.conventions import GENERATOR, NAN
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.families import holm
from gapfloor.statistics.power import minimum_detectable_effect, smallest_detectable_difference
from gapfloor.statistics.random_effects import random_effects_mean
from gapfloor.statistics.signflip import sign_flip_test
from gapfloor.statistics.welch import moments, t_interval, welch_of_moments

_NOT_ESTIMATED = Estimate(value=NAN, estimand=GENERATOR, method="runs x levels")


def sensitivity_rows(
    context: PlannedStudy,
    floor_families: Sequence[Sequence[RunsAndReference]],
    gap_families: Sequence[Sequence[GapHalves]],
) -> tuple[SensitivityRow, ...]:
    """One row per comparison with the floor, then one per gap."""
    rows = []
    for family in floor_families:
        rows += _with_holm([_of_comparison(context, one, len(family)) for one in family])
    for gaps in gap_families:
        rows += _with_holm([_of_gap(context, one, len(gaps)) for one in gaps])
    return tuple(rows)


def _with_holm(family: Sequence[SensitivityRow]) -> list[SensitivityRow]:
    adjusted = holm([row.generator.p for row in family])
    return [replace(row, generator_p_adjusted=float(p)) for row, p in zip(family, adjusted, strict=True)]


def _of_comparison(context: PlannedStudy, one: RunsAndReference, family_size: int) -> SensitivityRow:
    samples = [sample for _, sample in sorted(one.runs.items())]
    values = np.sort([sample.mean for sample in samples])
    floor = one.floor
    test = welch_of_moments(moments(values), moments(np.sort(floor.units)))
    confidence = context.plan.intervals.confidence
    counted = one.distinct if context.floor_method == "recommended" else one.runs
    pairs = [(sample.returns, sample.levels) for _, sample in sorted(counted.items())]
    played = level_matrix(pairs, floor=(floor.returns, floor.levels))
    flip = sign_flip_test(values - floor.mean, rng=context.rng(one.labels["seed"]))
    low, high = t_interval(test.difference, test.se, test.df, confidence=confidence)
    labels = {name: value for name, value in one.labels.items() if name != "reference"}
    return SensitivityRow(
        **labels,
        quantity=one.labels["level_set"],
        t_low=low,
        t_high=high,
        p_sign_flip=flip.p,
        p_sign_flip_smallest=flip.smallest,
        generator=crossed_mean(played, confidence=confidence) if played else _NOT_ESTIMATED,
        level_variance_share=level_variance_share(pairs) if played else NAN,
        floor_sem_clustered=clustered_sem(floor.returns, floor.levels) if floor.levels.size else NAN,
        minimum_detectable=_detectable(context, one, family_size),
        is_census=all(sample.is_census for sample in samples),
    )


def _detectable(context: PlannedStudy, one: RunsAndReference, family_size: int) -> float:
    """The smallest difference above the floor that the plan's method would have found."""
    is_recommended = context.floor_method == "recommended"
    samples = (one.distinct if is_recommended else one.runs).values()
    values, units = np.sort([sample.mean for sample in samples]), np.sort(one.floor.units)
    if values.size < 2:
        return NAN
    return smallest_detectable_difference(
        float(values.std(ddof=1)), float(units.std(ddof=1)), n_runs=values.size, n_floor=units.size,
        method=context.floor_method, family_size=family_size, alpha=context.plan.floor.alpha,
    )  # fmt: skip


def _of_gap(context: PlannedStudy, one: GapHalves, family_size: int) -> SensitivityRow:
    confidence = context.plan.intervals.confidence
    halves = list(one.both.values())
    gaps = np.array([run.gap for run in one.found.runs])
    variances = [
        sum(half.level_units.var(ddof=1) / half.level_units.size for half in (train, test))
        for train, test in halves
    ]
    flip = sign_flip_test(gaps, rng=context.rng(one.labels["seed"]))
    low, high = one.found.t_interval
    new_run = random_effects_mean(gaps, variances, confidence=confidence).prediction
    trains = [(train.returns, train.levels) for train, _ in halves]
    tests = [(test.returns, test.levels) for _, test in halves]
    levels: dict[str, Any] = {"generator": _NOT_ESTIMATED}
    train, test = level_matrix(trains), level_matrix(tests)
    if train is not None and test is not None and len(halves) > 1:
        levels["generator"] = crossed_gap(train, test, confidence=confidence)
        levels["level_variance_share"] = level_variance_share([*trains, *tests])
    quantity: Quantity = "gap"
    return SensitivityRow(
        **one.labels,
        quantity=quantity,
        t_low=low,
        t_high=high,
        p_sign_flip=flip.p,
        p_sign_flip_smallest=flip.smallest,
        minimum_detectable=minimum_detectable_effect(
            se=one.found.sem, df=one.found.n - 1, alpha=context.plan.floor.alpha, family_size=family_size
        ),
        new_run_low=new_run[0],
        new_run_high=new_run[1],
        is_census=all(half.is_census for pair in halves for half in pair),
        **levels,
    )
