"""What the comparisons with the floor and the gaps would be on new levels, and what they could have shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gapfloor.analysis.compared import Compared
from gapfloor.analysis.floor_rows import ReferenceComparison
from gapfloor.analysis.gap_rows import GapComparison
from gapfloor.analysis.grouping import RunSample
from gapfloor.analysis.rows import SensitivityRow
from gapfloor.statistics.clustered import crossed_gap, crossed_mean, level_matrix, level_variance_share
from gapfloor.statistics.conventions import GENERATOR, NAN, Floats, Ints
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.families import holm
from gapfloor.statistics.power import minimum_detectable_effect, smallest_detectable_difference


def sensitivity_rows(families: Sequence[Sequence[Compared]]) -> list[SensitivityRow]:
    """One row per comparison with the floor and per gap."""
    rows = []
    for family in families:
        found = [_row(one, len(family)) for one in family]
        adjusted = holm([row.generator.p for row in found])
        rows += [replace(row, generator_p_adjusted=float(p)) for row, p in zip(found, adjusted, strict=True)]
    return rows


def _row(one: Compared, family_size: int) -> SensitivityRow:
    fields: dict[str, Any] = {"generator": Estimate(value=NAN, estimand=GENERATOR, method="runs x levels")}
    if isinstance(one, ReferenceComparison):
        fields |= {"quantity": one.labels["level_set"], **_of_comparison(one, family_size)}
    elif isinstance(one, GapComparison):
        fields |= {"quantity": "gap", **_of_gap(one, family_size)}
    labels = {name: value for name, value in one.labels.items() if name != "reference"}
    return SensitivityRow(**labels, is_census=all(sample.is_census for sample in one.samples), **fields)


def _of_comparison(one: ReferenceComparison, family_size: int) -> dict[str, Any]:
    plan, floor = one.context.plan, one.floor
    values, units = one.values(one.method), np.sort(floor.units)
    used = one.distinct if one.method == "recommended" else one.runs
    pairs = [_episodes(sample) for _, (sample,) in sorted(used.items())]
    found: dict[str, Any] = {}
    if played := level_matrix(pairs, floor=_episodes(floor)):
        found["generator"] = crossed_mean(played, confidence=plan.intervals.confidence)
        found["level_variance_share"] = level_variance_share(pairs)
    if values.size > 1:
        found["minimum_detectable"] = smallest_detectable_difference(
            float(values.std(ddof=1)), float(units.std(ddof=1)), n_runs=values.size, n_floor=units.size,
            method=one.method, family_size=family_size, alpha=plan.floor.alpha,
        )  # fmt: skip
    return found


def _of_gap(one: GapComparison, family_size: int) -> dict[str, Any]:
    plan, test = one.context.plan, one.paper_test
    trains, tests = ([_episodes(sample) for sample in half] for half in zip(*one.runs.values(), strict=True))
    found: dict[str, Any] = {
        "minimum_detectable": minimum_detectable_effect(
            se=test.sem, df=test.n - 1, alpha=plan.floor.alpha, family_size=family_size
        )
    }
    train, held_out = level_matrix(trains), level_matrix(tests)
    if train is not None and held_out is not None and len(one.runs) > 1:
        found["generator"] = crossed_gap(train, held_out, confidence=plan.intervals.confidence)
        found["level_variance_share"] = level_variance_share([*trains, *tests])
    return found


def _episodes(sample: RunSample) -> tuple[Floats, Ints]:
    return sample.returns, sample.levels
