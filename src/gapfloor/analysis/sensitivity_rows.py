"""How firm a call is: what new levels say, what could have been shown, and which other choices flip it.

The choices are method, pooling, a run or a draw left out, and estimand. A run is left out of its own comparison, with
the rest of the family as it is; a draw is left out of the whole family. Only calls are made here, no intervals, so
nothing is resampled. A choice under which nothing can be tested does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from gapfloor.analysis.compared import Compared, Families, calls_of
from gapfloor.analysis.floor_rows import ReferenceComparison, comparisons
from gapfloor.analysis.gap_rows import GapComparison, gap_families
from gapfloor.analysis.grouping import RunSample
from gapfloor.analysis.planned_study import PlannedStudy, other_method
from gapfloor.analysis.rows import ComparisonRow, GapRow, OtherCall, SensitivityRow
from gapfloor.statistics.clustered import level_variance_share
from gapfloor.statistics.conventions import GENERATOR, NAN
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.families import FamilyCall, holm, word_of
from gapfloor.statistics.level_crossing import Episodes, crossed_gap, crossed_mean, level_table
from gapfloor.statistics.power import PlannedComparison, minimum_detectable_effect

#: A comparison, a choice in words, and what is said under it.
Found = Iterator[tuple[Compared, str, FamilyCall]]


def sensitivity_rows(
    context: PlannedStudy, families: Families, tested: Iterable[ComparisonRow | GapRow]
) -> tuple[SensitivityRow, ...]:
    """One row per comparison with the floor and per gap.

    Args:
        context: the study and its plan.
        families: what was compared with the floor, and the gaps.
        tested: the same comparisons and gaps with the plan's calls.
    """
    calls = {row.seed: row.call for row in tested}
    choices: dict[int, dict[str, str]] = {seed: {} for seed in calls}
    everywhere = [*_by_the_other_method(families), *_left_out(context, families), *_pooled(context, families)]
    for one, choice, found in everywhere:
        if found.is_possible:
            choices[one.seed][choice] = found.call
    rows = []
    for family in families:
        beyond = [_beyond_the_call(one, len(family)) for one in family]
        adjusted = holm([fields["generator"].p for fields in beyond])
        for one, fields, p in zip(family, beyond, map(float, adjusted), strict=True):
            call, others = calls[one.seed], choices[one.seed]
            if _may_be_asked_of_new_levels(one, call) and not math.isnan(p):
                alpha = context.plan.floor.alpha
                others["new levels"] = word_of(p, fields["generator"].value, one.words, alpha=alpha)
            flips = tuple(OtherCall(choice=name, call=word) for name, word in others.items() if word != call)
            labels = {name: value for name, value in one.labels.items() if name != "reference"}
            rows.append(
                SensitivityRow(
                    **labels, **fields, generator_p_adjusted=p, call=call, n_choices=len(others), flips=flips
                )
            )
    return tuple(rows)


def _may_be_asked_of_new_levels(one: Compared, call: str) -> bool:
    """Whether a call is about these levels only; equivalence is tested for no others."""
    return call != "equivalent" and not (
        isinstance(one, GapComparison) and one.context.method == "recommended"
    )


def _by_the_other_method(families: Families) -> Found:
    for family in families:
        other = other_method(family[0].context.method)
        choice = "the paper's tests" if other == "paper" else "the recommended tests"
        for one, call in zip(family, calls_of(family, other), strict=True):
            yield one, choice, call


def _left_out(context: PlannedStudy, families: Families) -> Found:
    """Each run of each comparison left out in turn, then each draw of the family."""
    for family in families:
        for at, one in enumerate(family):
            for name in sorted(one.distinct) if len(one.distinct) > context.plan.least_runs else ():
                changed = [*family[:at], one.without_run(name), *family[at + 1 :]]
                yield one, f"without {name}", calls_of(changed)[at]
        for draw in context.study.draws:
            less = [one.without_draw(draw) for one in family]
            calls = calls_of([new or one for new, one in zip(less, family, strict=True)]) if any(less) else []
            for new, call in zip(less, calls, strict=False):
                if new is not None:
                    yield new, f"without draw {draw}", call


def _pooled(context: PlannedStudy, families: Families) -> Found:
    """Each agent alone where the plan pools them; all agents together where it does not."""
    if len(context.study.agents) < 2:
        return
    is_pooled = context.pools == (None,)
    pools = context.study.agents if is_pooled else (None,)
    same: dict[tuple[str, ...], list[Compared]] = {}
    for one in (one for family in families for one in family):
        same.setdefault(_condition(one), []).append(one)
    for_calls = context.for_calls
    elsewhere: list[Any] = [
        *comparisons(for_calls, agents=pools), *gap_families(replace(for_calls, pools=pools))
    ]  # fmt: skip
    for family in elsewhere:
        for other, call in zip(family, calls_of(family), strict=True):
            choice = f"{other.labels['agent']} alone" if is_pooled else "agents pooled"
            for one in same.get(_condition(other), ()):
                yield one, choice, call


def _condition(one: Compared) -> tuple[str, ...]:
    return (type(one).__name__, *one.place, one.labels["rule"], one.labels["level_set"])


def _beyond_the_call(one: Compared, family_size: int) -> dict[str, Any]:
    """What new levels say of a comparison, and the smallest difference that it could have shown."""
    fields: dict[str, Any] = {
        "generator": Estimate(value=NAN, estimand=GENERATOR, method="runs x levels"),
        "is_census": all(sample.is_census for sample in one.samples),
    }
    if isinstance(one, ReferenceComparison):
        return {**fields, "quantity": one.labels["level_set"], **_of_comparison(one, family_size)}
    assert isinstance(one, GapComparison)
    return {**fields, "quantity": "gap", **_of_gap(one, family_size)}


def _of_comparison(one: ReferenceComparison, family_size: int) -> dict[str, Any]:
    plan, floor = one.context.plan, one.floor
    values, units = one.values(one.context.method), np.sort(floor.units)
    used = one.distinct if one.context.method == "recommended" else one.runs
    pairs = [_episodes(sample) for _, (sample,) in sorted(used.items())]
    found: dict[str, Any] = {}
    if played := level_table(pairs, _episodes(floor)):
        found["generator"] = crossed_mean(played, confidence=plan.intervals.confidence)
        found["level_variance_share"] = level_variance_share(pairs)
    if values.size > 1:
        planned = PlannedComparison(
            0.0, float(values.std(ddof=1)), float(units.std(ddof=1)),
            method=one.context.method, family_size=family_size, alpha=plan.floor.alpha,
        )  # fmt: skip
        found["minimum_detectable"] = planned.smallest_delta(values.size, units.size)
    return found


def _of_gap(one: GapComparison, family_size: int) -> dict[str, Any]:
    plan, test = one.context.plan, one.paper_test
    trains, tests = ([_episodes(sample) for sample in half] for half in zip(*one.runs.values(), strict=True))
    found: dict[str, Any] = {
        "minimum_detectable": minimum_detectable_effect(
            se=test.sem, df=test.n - 1, alpha=plan.floor.alpha, family_size=family_size
        )
    }
    train, held_out = level_table(trains), level_table(tests)
    if train is not None and held_out is not None and len(one.runs) > 1:
        found["generator"] = crossed_gap(train, held_out, confidence=plan.intervals.confidence)
        found["level_variance_share"] = level_variance_share([*trains, *tests])
    return found


def _episodes(sample: RunSample) -> Episodes:
    return sample.returns, sample.levels
