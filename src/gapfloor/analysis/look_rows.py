"""Calls of a plan with looks: each family's rows are called with the runs of its last planned look.

Runs count in the order of their seeds (agents in turn), so that which runs belong to a look does not depend on what
they scored. Games that the plan names and that have no runs yet count in the family: Holm's procedure must not become
stricter when they are added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gapfloor.analysis.floor_results import FloorComparisonResult, LookStep
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.labels import natural_key
from gapfloor.analysis.planned_study import PlannedStudy, floor_family
from gapfloor.statistics.looks import call_at_look, next_runs


def with_looks(
    context: PlannedStudy, rows: Sequence[FloorComparisonResult]
) -> tuple[FloorComparisonResult, ...]:
    """The rows of one family with the calls at the plan's looks; unchanged where looks do not apply to them."""
    looks = context.plan.floor.looks
    is_planned = all(row.agent is None and row.reference == context.plan.floor.reference for row in rows)
    if looks is None or not is_planned:
        return tuple(rows)
    values, floors = [], []
    for row in rows:
        place = (row.game, row.mode, row.budget)
        runs = context.study.runs(*place, row.rule, row.level_set)
        distinct = context.distinct(runs, game=row.game, mode=row.mode, budget=row.budget)
        values.append([sample.mean for sample in _by_seed(context, distinct)])
        floor = context.floor(*place, row.level_set)
        assert floor is not None  # the row has been compared with it
        floors.append(floor.units)
    waiting = _without_runs(context, rows)
    alpha = context.plan.floor.alpha
    found = next_runs(
        [*values, *([] for _ in range(waiting))],
        [*floors, *([] for _ in range(waiting))],
        looks=looks,
        alpha=alpha,
        margin=context.margin,
    )
    called = []
    for row, decision in zip(rows, found, strict=False):
        assert row.recommended is not None
        call = call_at_look(decision, row.recommended.test, family_size=len(rows) + waiting, alpha=alpha)
        step = LookStep(runs_used=decision.n_used, advice=decision.advice, more_runs=decision.more_runs)
        called.append(dataclasses.replace(row, recommended=call, look=step))
    return tuple(called)


def _by_seed(context: PlannedStudy, runs: dict[RunName, RunSample]) -> list[RunSample]:
    order = {agent: at for at, agent in enumerate(context.study.agents)}
    names = sorted(runs, key=lambda name: (natural_key(name.seed), order.get(name.agent, 0), name.agent))
    return [runs[name] for name in names]


def _without_runs(context: PlannedStudy, rows: Sequence[FloorComparisonResult]) -> int:
    """Comparisons that the plan names in this family and that have no runs yet."""
    family = rows[0].family
    present = {(row.game, row.budget, row.rule, row.level_set) for row in rows}
    planned = {
        (game, budget, rule, level_set)
        for budget, games in context.plan.scope.games.items()
        for game in games
        for rule in context.plan.scope.rules
        for level_set in ("train", "test")
    }
    return sum(floor_family(context, where) == family for where in planned - present)
