"""Which calls flip under other choices: method, pooling, a run or a draw left out, estimand.

A run is left out of its own comparison, with the rest of the family as it is; a draw is left out of the whole family.
Only calls are made here, no intervals, so nothing is resampled. A choice under which nothing can be tested does not
count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gapfloor.analysis.floor_rows import RunsAndReference, comparisons
from gapfloor.analysis.gap_rows import GapHalves, excess, gap_families
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import ComparisonRow, GapRow, OtherCall, SensitivityRow
from gapfloor.plan.model import Method
from gapfloor.statistics.families import call_family, holm, word_of
from gapfloor.statistics.floor import compare_to_floor
from gapfloor.statistics.gap_calls import GAP_WORDS, call_gap_family
from gapfloor.statistics.gaps import gap
from gapfloor.statistics.reference_calls import call_reference_family, compare_to_reference

Compared = RunsAndReference | GapHalves
#: A comparison, by the seed of its row, and its call under another choice; empty where nothing can be tested.
Found = Iterator[tuple[int, str, str]]


def with_choices(
    context: PlannedStudy,
    rows: Iterable[SensitivityRow],
    families: Sequence[Sequence[Compared]],
    tested: Sequence[ComparisonRow | GapRow],
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
    for family in families:
        for seed, choice, call in (*_by_the_other_method(context, family), *_left_out(context, family)):
            if call:
                choices[seed][choice] = call
    for seed, choice, call in _pooled(context, families):
        if call:
            choices[seed][choice] = call
    return tuple(_with(context, row, calls[row.seed], choices[row.seed]) for row in rows)


def _with(context: PlannedStudy, row: SensitivityRow, call: str, choices: dict[str, str]) -> SensitivityRow:
    is_gap, p = row.quantity == "gap", row.generator_p_adjusted
    method = context.gap_method if is_gap else context.floor_method
    # The recommended test of a gap is about the generator already; equivalence is tested for these levels only.
    if not math.isnan(p) and call != "equivalent" and not (is_gap and method == "recommended"):
        words = GAP_WORDS if is_gap else ("above", "below")
        choices["new levels"] = word_of(p, row.generator.value, words, alpha=context.plan.floor.alpha)
    flips = tuple(OtherCall(choice=name, call=word) for name, word in choices.items() if word != call)
    return replace(row, call=call, n_choices=len(choices), flips=flips)


def _by_the_other_method(context: PlannedStudy, family: Sequence[Compared]) -> Found:
    calls = _Calls(context, is_gap=_is_gap(family))
    other: Method = "paper" if calls.method == "recommended" else "recommended"
    calls = replace(calls, other=other)
    name = "the paper's tests" if other == "paper" else "the recommended tests"
    for one, call in zip(family, calls.of([calls.test(one) for one in family]), strict=True):
        has_enough = len(one.distinct) >= context.plan.least_runs
        yield one.labels["seed"], name, call if has_enough else ""


def _left_out(context: PlannedStudy, family: Sequence[Compared]) -> Found:
    """Each run of each comparison left out in turn, then each draw of the family."""
    calls = _Calls(context, is_gap=_is_gap(family))
    if context.plan.floor.looks is not None and not calls.is_gap:
        return  # at a look the runs that count are fixed
    least = context.plan.least_runs
    tests = [calls.test(one) for one in family]
    for at, one in enumerate(family):
        for name in sorted(one.distinct) if len(one.distinct) > least else ():
            changed = [*tests[:at], calls.test(_without_run(one, name)), *tests[at + 1 :]]
            yield one.labels["seed"], f"without {name}", calls.of(changed)[at]
    for draw in context.study.draws:
        less = [_without_draw(one, draw) if len(one.distinct) >= least else None for one in family]
        changed = [calls.test(new) if new else test for new, test in zip(less, tests, strict=True)]
        found = calls.of(changed) if any(less) else []
        for new, call in zip(less, found, strict=False):
            if new is not None:
                yield new.labels["seed"], f"without draw {draw}", call


def _pooled(context: PlannedStudy, families: Sequence[Sequence[Compared]]) -> Found:
    """Each agent alone where the plan pools them; all agents together where it does not."""
    if len(context.study.agents) < 2:
        return
    is_pooled = context.pools == (None,)
    pools = context.study.agents if is_pooled else (None,)
    # Only calls are made of these gaps, so their intervals do not matter.
    plan = replace(context.plan, intervals=replace(context.plan.intervals, resamples=1))
    elsewhere = replace(context, plan=plan, pools=pools)
    seeds: dict[Any, list[int]] = {}
    for one in (one for family in families for one in family):
        seeds.setdefault(_where(one), []).append(one.labels["seed"])
    others: list[Sequence[Compared]] = [*comparisons(context, agents=pools), *gap_families(elsewhere)]
    for family in others:
        calls = _Calls(context, is_gap=_is_gap(family))
        for one, call in zip(family, calls.of([calls.test(one) for one in family]), strict=True):
            agent = one.labels["agent"]
            has_enough = len(one.distinct) >= context.plan.least_runs
            for seed in seeds.get(_where(one), ()):
                yield seed, f"{agent} alone" if is_pooled else "agents pooled", call if has_enough else ""


def _where(one: Compared) -> tuple[str, ...]:
    return tuple(one.labels.get(name, "gap") for name in ("game", "mode", "budget", "rule", "level_set"))


def _is_gap(family: Sequence[Compared]) -> bool:
    return isinstance(family[0], GapHalves)


@dataclass(frozen=True)
class _Calls:
    """How a family is called by one method, in two steps, so that one comparison can be replaced."""

    context: PlannedStudy
    is_gap: bool
    other: Method | None = None

    @property
    def method(self) -> Method:
        """The method that makes the calls: the plan's, unless another one is given."""
        return self.other or (self.context.gap_method if self.is_gap else self.context.floor_method)

    def test(self, one: Compared) -> Any:
        """The test of one comparison, before its family is known."""
        context, rng = self.context, self.context.rng(0)
        if isinstance(one, GapHalves):
            if self.method == "recommended":
                return excess(context, one)
            trains = [train.level_units for train, _ in one.both.values()]
            tests = [test.level_units for _, test in one.both.values()]
            return gap(trains, tests, rng=rng, n_resamples=1)
        margin = context.margin(one.floor, *one.runs.values())
        if self.method == "paper":
            values = [sample.mean for sample in one.runs.values()]
            return compare_to_floor(values, one.floor.units, rng=rng, margin=margin, n_resamples=1)
        return compare_to_reference(
            [sample.mean for sample in one.distinct.values()],
            one.floor.units,
            seen=one.seen,
            margin=margin,
            least_runs=context.plan.least_runs,
            is_called_later=True,
        )

    def of(self, tests: Sequence[Any]) -> list[str]:
        """The calls of a family; empty where nothing can be tested."""
        alpha = self.context.plan.floor.alpha
        if self.method == "recommended":
            made: Any = (call_gap_family if self.is_gap else call_reference_family)(tests, alpha=alpha)
            return ["" if found.test.not_tested else found.call for found in made]
        words: list[str]
        if self.is_gap:
            adjusted = holm([test.p_fisher for test in tests])
            words = [
                word_of(p, test.mean, GAP_WORDS, alpha=alpha) for test, p in zip(tests, adjusted, strict=True)
            ]
        else:
            words = [found.call for found in call_family(tests, alpha=alpha)]
        return ["" if word == "not tested" else word for word in words]


def _without_run(one: Compared, name: RunName) -> Compared:
    def rest(runs: dict[RunName, Any]) -> dict[RunName, Any]:
        return {key: sample for key, sample in runs.items() if key != name}

    if isinstance(one, GapHalves):
        return replace(one, both=rest(one.both), distinct=rest(one.distinct))
    return replace(one, runs=rest(one.runs), distinct=rest(one.distinct))


def _without_draw(one: Compared, draw: str) -> Compared | None:
    """The comparison without a draw; None where the runs have no such draw or nothing could be tested without it."""
    if isinstance(one, GapHalves):
        runs = [half for pair in one.both.values() for half in pair]
        floors = [floor for floor in one.floors if floor is not None]
    else:
        runs, floors = list(one.runs.values()), [one.floor]
    if not any(draw in sample.draws for sample in runs):
        return None
    if not all(_can_lose(sample, draw) for sample in (*runs, *floors)):
        return None
    if isinstance(one, GapHalves):
        both = {
            name: (train.without_draw(draw), test.without_draw(draw))
            for name, (train, test) in one.both.items()
        }
        train_floor, test_floor = (floor and floor.without_draw(draw) for floor in one.floors)
        distinct = {name: both[name] for name in one.distinct}
        return replace(one, both=both, distinct=distinct, floors=(train_floor, test_floor))
    kept = {name: sample.without_draw(draw) for name, sample in one.runs.items()}
    distinct_runs = {name: kept[name] for name in one.distinct}
    return replace(one, runs=kept, distinct=distinct_runs, floor=one.floor.without_draw(draw))


def _can_lose(sample: RunSample, draw: str) -> bool:
    """Whether two episodes remain without a draw; in a census, and of several networks, the parts are not draws."""
    if draw not in sample.draws:
        return True
    remaining = np.count_nonzero(sample.draw != sample.draws.index(draw))
    return not sample.is_census and sample.network_means.size < 2 and remaining > 1
