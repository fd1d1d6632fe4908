"""How firm a call is: what new levels say, what could have been shown, and which other choices flip it.

The choices are method, pooling, a run or a draw left out, and estimand. A run is left out of its own comparison, with
the rest of the family as it is; a draw is left out of the whole family. Only calls are made here, no intervals, so
nothing is resampled. A choice under which nothing can be tested does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gapfloor.analysis.compared import (
    Compared,
    ReferenceComparison,
    Runs,
    calls_of,
    comparisons,
    gap_comparisons,
    in_families,
)
from gapfloor.analysis.planned_study import PlannedStudy, other_method
from gapfloor.analysis.rows import ComparisonRow, GapRow, OtherCall, SensitivityRow
from gapfloor.statistics.conventions import GENERATOR, NAN, Estimate
from gapfloor.statistics.families import FamilyCall, holm, word_of
from gapfloor.statistics.level_crossing import (
    Episodes,
    crossed_gap,
    crossed_mean,
    level_table,
    level_variance_share,
)
from gapfloor.statistics.power import PlannedComparison, minimum_detectable_effect

#: A comparison, a choice in words, and what is said under it.
Found = Iterator[tuple[Compared, str, FamilyCall]]


def sensitivity_rows(
    context: PlannedStudy, compared: Sequence[Compared], tested: Iterable[ComparisonRow | GapRow]
) -> tuple[SensitivityRow, ...]:
    """One row per comparison with the floor and per gap.

    Args:
        context: the study and its plan.
        compared: what was compared with the floor, and the gaps.
        tested: the same comparisons and gaps with the plan's calls.
    """
    calls = {row.seed: row.call for row in tested}
    choices: dict[int, dict[str, str]] = {seed: {} for seed in calls}
    for one, choice, found in (*_changed(context, compared), *_pooled(context, compared)):
        if found.call != "not tested" or found.is_withheld:  # something could be tested, whatever came of it
            choices[one.labels["seed"]][choice] = found.call
    rows = []
    for family in in_families(compared):
        beyond = [_beyond_the_call(one, len(family)) for one in family]
        adjusted = holm([fields["generator"].p for fields in beyond])
        for one, fields, p in zip(family, beyond, map(float, adjusted), strict=True):
            call, others = calls[one.labels["seed"]], choices[one.labels["seed"]]
            # Equivalence is tested for these levels only, and a recommended gap is about new levels already.
            is_about_new_levels = fields["quantity"] == "gap" and context.method == "recommended"
            if call != "equivalent" and not is_about_new_levels and not np.isnan(p):
                words = one.paper_test.words
                alpha = context.plan.floor.alpha
                others["new levels"] = word_of(p, fields["generator"].value, words, alpha=alpha)
            flips = tuple(OtherCall(choice=name, call=word) for name, word in others.items() if word != call)
            labels = {name: value for name, value in one.labels.items() if name != "reference"}
            rows.append(
                SensitivityRow(
                    **labels, **fields, generator_p_adjusted=p, call=call, n_choices=len(others), flips=flips
                )
            )
    return tuple(rows)


def _changed(context: PlannedStudy, compared: Sequence[Compared]) -> Found:
    """The other method, then each run of each comparison left out in turn, then each draw of the family."""
    other = other_method(context.method)
    method = "the paper's tests" if other == "paper" else "the recommended tests"
    for one, call in zip(compared, calls_of(compared, other), strict=True):
        yield one, method, call
    for family in in_families(compared):
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


def _pooled(context: PlannedStudy, compared: Sequence[Compared]) -> Found:
    """Each agent alone where the plan pools them; all agents together where it does not."""
    if len(context.study.agents) < 2:
        return

    def condition(one: Compared) -> tuple[str, ...]:
        labels = ("game", "mode", "budget", "rule", "level_set")
        return (type(one).__name__, *(one.labels[name] for name in labels))

    is_pooled = context.pools == (None,)
    pools = context.study.agents if is_pooled else (None,)
    same: dict[tuple[str, ...], list[Compared]] = {}
    for one in compared:
        same.setdefault(condition(one), []).append(one)
    for_calls = context.for_calls
    elsewhere = [*comparisons(for_calls, agents=pools), *gap_comparisons(replace(for_calls, pools=pools))]
    for other, call in zip(elsewhere, calls_of(elsewhere), strict=True):
        choice = f"{other.labels['agent']} alone" if is_pooled else "agents pooled"
        for one in same.get(condition(other), ()):
            yield one, choice, call


def _beyond_the_call(one: Compared, family_size: int) -> dict[str, Any]:
    """What new levels say of a comparison or gap, and the smallest difference that it could have shown."""
    plan, used, detectable = one.context.plan, one.runs, NAN
    confidence = plan.intervals.confidence
    if isinstance(one, ReferenceComparison):
        method, units = one.context.method, np.sort(one.floor.units)
        used = dict(sorted((one.distinct if method == "recommended" else one.runs).items()))
        values = one.values(method)
        if values.size > 1:
            planned = PlannedComparison(
                0.0, float(values.std(ddof=1)), float(units.std(ddof=1)),
                method=method, family_size=family_size, alpha=plan.floor.alpha,
            )  # fmt: skip
            detectable = planned.smallest_delta(values.size, units.size)
        (episodes,) = halves = _episodes(used)
        table = level_table(episodes, (one.floor.returns, one.floor.levels))
        crossed = crossed_mean(table, confidence=confidence) if table else None
    else:
        test, halves = one.paper_test, _episodes(used)
        if test.n > 1:
            detectable = minimum_detectable_effect(
                se=test.sem, df=test.n - 1, alpha=plan.floor.alpha, family_size=family_size
            )
        train, held_out = map(level_table, halves)
        crossed = None
        if train is not None and held_out is not None and len(used) > 1:
            crossed = crossed_gap(train, held_out, confidence=confidence)
    return {
        "quantity": one.labels["level_set"] or "gap",
        "generator": crossed or Estimate(value=NAN, estimand=GENERATOR, method="runs x levels"),
        "level_variance_share": level_variance_share([run for half in halves for run in half])
        if crossed
        else NAN,
        "minimum_detectable": detectable,
        "is_census": all(sample.is_census for sample in one.samples),
    }


def _episodes(runs: Runs) -> list[list[Episodes]]:
    """Returns and levels of each run, per level set."""
    return [[(sample.returns, sample.levels) for sample in half] for half in zip(*runs.values(), strict=True)]
