"""Rows about the gap between training and held-out levels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from gapfloor.analysis.gap_results import GapResult, RunGap
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.planned_study import PlannedStudy, family_name
from gapfloor.analysis.robust_rows import complete_gap_family, robust_gap_estimates
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.families import holm
from gapfloor.statistics.gap_calls import Episodes, GapCall, GapWord, call_gap_family, excess_gap
from gapfloor.statistics.gaps import gap


def halves(
    context: PlannedStudy, place: tuple[str, str, str], rule: str, *, agent: str | None = None
) -> dict[RunName, tuple[RunSample, RunSample]]:
    """The training and held-out samples of the runs that have both, in the order of agents and seeds."""
    train = context.study.runs(*place, rule, "train")
    test = context.study.runs(*place, rule, "test")
    names = [name for name in train if name in test and (agent is None or name.agent == agent)]
    # A run with one episode a half has no variance to test.
    names = [name for name in names if min(train[name].returns.size, test[name].returns.size) > 1]
    order = {name: i for i, name in enumerate(context.study.agents)}
    names.sort(key=lambda name: (order.get(name.agent, 0), len(name.seed), name.seed))
    return {name: (train[name], test[name]) for name in names}


def gap_rows(context: PlannedStudy) -> tuple[GapResult, ...]:
    """The pooled gap of every game, budget and rule, with Holm within each family."""
    rows = []
    for place in context.study.places():
        for rule in context.study.rules:
            both = halves(context, place, rule)
            if both:
                rows.append(_gap(context, place, rule, both))
    return _correct(context, rows)


def _gap(
    context: PlannedStudy,
    place: tuple[str, str, str],
    rule: str,
    both: dict[RunName, tuple[RunSample, RunSample]],
) -> GapResult:
    game, mode, budget = place
    unnamed = context.beyond_looks
    row = context.row("gap", game=game, mode=mode, budget=budget, n=len(both), rules=(rule,), unnamed=unnamed)
    rng = context.rng(row["seed"])
    found = gap(
        [train.level_units for train, _ in both.values()],
        [test.level_units for _, test in both.values()],
        rng=rng,
        **context.resampling,
    )
    floors = (context.floor(*place, "train"), context.floor(*place, "test"))
    floor_gap = floors[0].mean - floors[1].mean if floors[0] and floors[1] else NAN
    naming = context.naming(
        game=game, budget=budget, rules=(rule,), level_sets=("train", "test"), unnamed=unnamed
    )
    values = {"rule": rule, "budget": budget}
    runs = tuple(
        RunGap(agent=name.agent, seed=name.seed, test=tested)
        for name, tested in zip(both, found.runs, strict=True)
    )
    return GapResult(
        **row,
        rule=rule,
        gap=found,
        p_holm=NAN,
        floor_gap=floor_gap,
        runs=runs,
        family=family_name("gap", naming, *(values[name] for name in context.plan.gaps.family)),
        family_size=0,
        method=context.gap_method,
        recommended=_recommended(context, place, both, floors),
        robust=robust_gap_estimates(context, found, list(both.values()), rng=rng),
    )


def _correct(context: PlannedStudy, rows: Sequence[GapResult]) -> tuple[GapResult, ...]:
    families: dict[tuple[str, str], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault((row.family, row.mode), []).append(i)
    corrected = list(rows)
    for members in families.values():
        adjusted = holm([rows[i].gap.p_fisher for i in members])
        alpha = context.plan.floor.alpha
        tests = [found.test for i in members if (found := rows[i].recommended) is not None]
        calls = call_gap_family(tests, alpha=alpha)
        for i, p, recommended in zip(members, adjusted, calls, strict=True):
            word = _paper_call(rows[i], float(p), alpha=alpha, least_runs=context.plan.least_runs)
            called = dataclasses.replace(
                rows[i],
                p_holm=float(p),
                family_size=len(members),
                paper_call=word,
                recommended=recommended,
            )
            corrected[i] = complete_gap_family(context, called)
    return tuple(corrected)


def _recommended(
    context: PlannedStudy,
    place: tuple[str, str, str],
    both: dict[RunName, tuple[RunSample, RunSample]],
    floors: tuple[RunSample | None, RunSample | None],
) -> GapCall:
    """The recommended test of a gap, over different runs, before its family is known."""
    game, mode, budget = place
    names = context.distinct(
        {name: train for name, (train, _) in both.items()}, game=game, mode=mode, budget=budget
    )
    halves_of = [both[name] for name in names]
    train_floor, test_floor = (None if floor is None else _episodes(floor) for floor in floors)
    found = excess_gap(
        [_episodes(train) for train, _ in halves_of],
        [_episodes(test) for _, test in halves_of],
        train_floor=train_floor,
        test_floor=test_floor,
        least_runs=context.plan.least_runs,
    )
    return call_gap_family([found], alpha=context.plan.floor.alpha)[0]


def _episodes(sample: RunSample) -> Episodes:
    return sample.returns, sample.levels


def _paper_call(row: GapResult, p_holm: float, *, alpha: float, least_runs: int) -> GapWord:
    assert row.recommended is not None
    if row.recommended.test.n < least_runs or math.isnan(p_holm):
        return "not tested"
    if p_holm >= alpha:
        return "not distinguishable"
    return "train higher" if row.gap.mean > 0 else "test higher"
