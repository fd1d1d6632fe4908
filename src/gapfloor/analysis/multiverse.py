"""Which calls flip under other choices: method, pooling, a run or a draw left out, estimand.

A run is left out of its own comparison, with the rest of the family as it is; a draw is left out of the whole family.
Only calls are made here, no intervals, so nothing is resampled. A choice under which nothing can be tested does not
count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from gapfloor.analysis.compared import Called, Compared, Families, calls_of
from gapfloor.analysis.floor_rows import comparisons
from gapfloor.analysis.gap_rows import gap_families
from gapfloor.analysis.planned_study import PlannedStudy, other_method
from gapfloor.analysis.rows import ComparisonRow, GapRow, OtherCall, SensitivityRow
from gapfloor.statistics.families import word_of

#: A comparison, a choice in words, and what is said under it.
Found = Iterator[tuple[Compared, str, Called]]


def with_choices(
    context: PlannedStudy,
    rows: Iterable[SensitivityRow],
    families: Families,
    tested: Iterable[ComparisonRow | GapRow],
) -> tuple[SensitivityRow, ...]:
    """The rows with their calls and with the choices that flip them.

    Args:
        context: the study and its plan.
        rows: one per comparison with the floor and per gap.
        families: what was compared with the floor, and the gaps.
        tested: the same comparisons and gaps with the plan's calls.
    """
    calls = {row.seed: row.call for row in tested}
    choices: dict[int, dict[str, str]] = {seed: {} for seed in calls}
    everywhere = [*_by_the_other_method(families), *_left_out(context, families), *_pooled(context, families)]
    for one, choice, called in everywhere:
        if called.is_possible:
            choices[one.seed][choice] = called.decision.call
    compared = {one.seed: one for family in families for one in family}
    return tuple(_with(compared[row.seed], row, calls[row.seed], choices[row.seed]) for row in rows)


def _with(one: Compared, row: SensitivityRow, call: str, choices: dict[str, str]) -> SensitivityRow:
    is_about_new_levels = row.quantity == "gap" and one.method == "recommended"
    p = row.generator_p_adjusted
    # Equivalence is tested for these levels only.
    if not math.isnan(p) and call != "equivalent" and not is_about_new_levels:
        choices["new levels"] = word_of(p, row.generator.value, one.words, alpha=one.context.plan.floor.alpha)
    flips = tuple(OtherCall(choice=name, call=word) for name, word in choices.items() if word != call)
    return replace(row, call=call, n_choices=len(choices), flips=flips)


def _by_the_other_method(families: Families) -> Found:
    for family in families:
        other = other_method(family[0].method)
        choice = "the paper's tests" if other == "paper" else "the recommended tests"
        for one, called in zip(family, calls_of(family, other), strict=True):
            yield one, choice, called


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
            for new, called in zip(less, calls, strict=False):
                if new is not None:
                    yield new, f"without draw {draw}", called


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
    for family in (*comparisons(for_calls, agents=pools), *gap_families(replace(for_calls, pools=pools))):
        for other, called in zip(family, calls_of(family), strict=True):
            choice = f"{other.labels['agent']} alone" if is_pooled else "agents pooled"
            for one in same.get(_condition(other), ()):
                yield one, choice, called


def _condition(one: Compared) -> tuple[str, ...]:
    return (type(one).__name__, *one.place, one.labels["rule"], one.labels["level_set"])
