"""Rows about the floor: the floors themselves and the comparisons of runs with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.floor_results import CallCount, FloorComparisonResult, FloorResult
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.look_rows import with_looks
from gapfloor.analysis.planned_study import PlannedStudy, floor_family
from gapfloor.analysis.robust_rows import complete_family, robust_floor_estimates
from gapfloor.statistics.clustered import clustered_sem
from gapfloor.statistics.conventions import NAN, Call, finite_sample, sem
from gapfloor.statistics.distinct import distinct
from gapfloor.statistics.families import FamilyCall, call_family
from gapfloor.statistics.floor import compare_to_floor
from gapfloor.statistics.reference_calls import ReferenceTest, call_reference_family, compare_to_reference


def floor_rows(context: PlannedStudy) -> tuple[FloorResult, ...]:
    """Every reference on every level set."""
    study, rows = context.study, []
    for place, sample in study.references.items():
        game, mode, budget, reference, level_set = place
        returns = finite_sample(sample.returns, "floor returns")
        row = context.row(
            "floor",
            game=game,
            mode=mode,
            budget=budget,
            n=returns.size,
            rules=(reference,),
            level_sets=(level_set,),
        )
        rows.append(
            FloorResult(
                **row,
                reference=reference,
                level_set=level_set,
                mean=float(returns.mean()),
                sem=sem(sample.units),
                n_draws=len(sample.draws),
                n_levels=distinct(sample.levels).size,
                sem_clustered=clustered_sem(sample.returns, sample.levels) if sample.levels.size else NAN,
                success=success_rate([sample]),
            )
        )
    order = {name: i for i, name in enumerate(study.games)}
    return tuple(
        sorted(
            rows, key=lambda r: (r.reference != FLOOR_RULE, r.reference, order[r.game], r.budget, r.level_set)
        )
    )


def comparison_rows(
    context: PlannedStudy, *, agent: str | None = None, reference: str | None = None
) -> tuple[FloorComparisonResult, ...]:
    """Runs (of one agent, or of all) against a reference (the plan's), with the calls of their families."""
    rows, tests = [], []
    reference = context.plan.floor.reference if reference is None else reference
    for game, mode, budget in context.study.places():
        for rule in context.study.rules:
            for level_set in context.study.level_sets:
                runs = context.study.runs(game, mode, budget, rule, level_set)
                runs = {name: s for name, s in runs.items() if agent is None or name.agent == agent}
                floor = context.study.floor(game, mode, budget, level_set, reference=reference)
                if runs and floor is not None and floor.returns.size > 1:
                    where = (game, mode, budget, rule, level_set)
                    row, test = _compare(context, where, runs, floor, agent=agent, reference=reference)
                    rows.append(row)
                    tests.append(test)
    return _call_families(context, rows, tests)


def _compare(
    context: PlannedStudy,
    where: tuple[str, str, str, str, str],
    runs: dict[RunName, RunSample],
    floor: RunSample,
    *,
    agent: str | None,
    reference: str,
) -> tuple[FloorComparisonResult, ReferenceTest]:
    """A row without the calls of its family, and the recommended test that they need."""
    game, mode, budget, rule, level_set = where
    unnamed = _unnamed(context, agent, reference)
    row = context.row(
        "floor comparison",
        game=game,
        mode=mode,
        budget=budget,
        n=len(runs),
        rules=(rule,),
        level_sets=(level_set,),
        names=(agent or "", reference),
        unnamed=unnamed,
    )
    rng = context.rng(row["seed"])
    found = compare_to_floor(
        [sample.mean for sample in runs.values()],
        floor.units,
        rng=rng,
        margin=context.margin,
        **context.resampling,
    )
    distinct = context.distinct(runs, game=game, mode=mode, budget=budget)
    recommended = compare_to_reference(
        [sample.mean for sample in distinct.values()],
        floor.units,
        margin=context.margin,
        least_runs=context.plan.least_runs,
        is_called_later=True,
    )
    result = FloorComparisonResult(
        **row,
        rule=rule,
        level_set=level_set,
        agent=agent,
        reference=reference,
        test=found,
        decision=FamilyCall(p_holm=NAN, call="not tested", family_size=0),
        ratio=found.mean / found.floor if found.floor > 0 else NAN,
        success=success_rate(runs.values()),
        floor_success=success_rate([floor]),
        family=floor_family(context, (game, budget, rule, level_set), agent=agent, unnamed=unnamed),
        method=context.floor_method,
        n_copies=len(runs) - len(distinct),
        is_census=all(sample.is_census for sample in runs.values()),
    )
    if agent is None and reference == context.plan.floor.reference:
        result = dataclasses.replace(
            result,
            robust=robust_floor_estimates(context, found, runs, floor, rng=rng),
        )
    return result, recommended


def _unnamed(context: PlannedStudy, agent: str | None, reference: str) -> str:
    """Why no plan names this comparison, or nothing."""
    if reference != context.plan.floor.reference:
        return f"the plan does not name comparisons with the reference '{reference}'"
    if agent is not None:
        return "the plan does not name comparisons of single agents"
    if context.plan.floor.looks is not None and not context.plan.scope.games:
        return "the plan has looks but does not name its games (scope.games), so the family is not fixed"
    return ""


def _call_families(
    context: PlannedStudy, rows: Sequence[FloorComparisonResult], tests: Sequence[ReferenceTest]
) -> tuple[FloorComparisonResult, ...]:
    families: dict[tuple[str, str], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault((row.family, row.mode), []).append(i)
    called = list(rows)
    for members in families.values():
        decisions = call_family([rows[i].test for i in members], alpha=context.plan.floor.alpha)
        calls = call_reference_family([tests[i] for i in members], alpha=context.plan.floor.alpha)
        for i, decision, recommended in zip(members, decisions, calls, strict=True):
            called[i] = dataclasses.replace(rows[i], decision=decision, recommended=recommended)
        for i, row in zip(members, with_looks(context, [called[i] for i in members]), strict=True):
            called[i] = row
        for i, row in zip(members, complete_family(context, [called[i] for i in members]), strict=True):
            called[i] = row
    return tuple(called)


def call_counts(
    rows: Iterable[FloorComparisonResult], *, call: Callable[[FloorComparisonResult], Call]
) -> tuple[CallCount, ...]:
    """How many games got which call, per budget, rule and level set.

    Args:
        rows: comparisons with the floor.
        call: which call of a row to count: the paper's, or that of the plan's method.
    """
    groups: dict[tuple[str, str, str], list[FloorComparisonResult]] = {}
    for row in rows:
        groups.setdefault((row.budget, row.rule, row.level_set), []).append(row)
    return tuple(
        CallCount(
            budget=budget,
            rule=rule,
            level_set=level_set,
            games=len(members),
            above=sum(call(row) == "above" for row in members),
            below=sum(call(row) == "below" for row in members),
            equivalent=sum(call(row) == "equivalent" for row in members),
            not_distinguishable=sum(call(row) == "not distinguishable" for row in members),
            not_tested=sum(call(row) == "not tested" for row in members),
            z_not_above=sum(not row.test.z > 2 for row in members),
        )
        for (budget, rule, level_set), members in groups.items()
    )


def success_rate(samples: Iterable[RunSample]) -> float:
    """Share of positive returns where returns are all or nothing; NaN where they are graded."""
    returns = np.concatenate([sample.returns for sample in samples])
    if returns.min() != 0 or not ((returns == 0) | (returns == returns.max())).all():
        return NAN
    return float(np.count_nonzero(returns > 0) / returns.size)
