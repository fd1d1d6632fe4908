"""Calls of a plan with looks: each family is called with the runs of its last planned look.

Runs count in the order of their seeds (agents in turn), so that which runs belong to a look does not depend on what
they scored. Games that the plan names and that have no runs yet count in the family: Holm's procedure must not become
stricter when they are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.labels import natural_key
from gapfloor.analysis.planned_study import PlannedStudy, floor_family
from gapfloor.analysis.rows import LookStep
from gapfloor.statistics.looks import call_at_look, next_runs
from gapfloor.statistics.reference_calls import ReferenceCall, ReferenceTest

if TYPE_CHECKING:
    from gapfloor.analysis.floor_rows import Comparison


def calls_at_looks(
    context: PlannedStudy, family: Sequence[Comparison], tests: Sequence[ReferenceTest]
) -> tuple[tuple[ReferenceCall, ...], tuple[LookStep, ...]]:
    """The calls of one family at the plan's looks, and where each comparison is in them.

    `tests` are the comparisons of all runs there are, shown where no look has been reached.
    """
    assert context.plan.floor.looks is not None
    waiting = _without_runs(context, family)
    alpha = context.plan.floor.alpha
    found = next_runs(
        [
            *([sample.mean for sample in _by_seed(context, one.distinct)] for one in family),
            *([] for _ in range(waiting)),
        ],
        [*(one.floor.units for one in family), *([] for _ in range(waiting))],
        looks=context.plan.floor.looks,
        alpha=alpha,
        margin=context.margin,
    )
    decisions = found[: len(family)]
    size = len(family) + waiting
    calls = tuple(
        call_at_look(decision, test, family_size=size, alpha=alpha)
        for decision, test in zip(decisions, tests, strict=True)
    )
    steps = tuple(
        LookStep(
            runs=len(one.distinct),
            runs_used=decision.n_used,
            advice=decision.advice,
            more_runs=decision.more_runs,
        )
        for one, decision in zip(family, decisions, strict=True)
    )
    return calls, steps


def _by_seed(context: PlannedStudy, runs: dict[RunName, RunSample]) -> list[RunSample]:
    order = {agent: at for at, agent in enumerate(context.study.agents)}
    names = sorted(runs, key=lambda name: (natural_key(name.seed), order.get(name.agent, 0), name.agent))
    return [runs[name] for name in names]


def _without_runs(context: PlannedStudy, family: Sequence[Comparison]) -> int:
    """Comparisons that the plan names in this family and that have no runs yet."""
    present = {
        (one.labels["game"], one.labels["budget"], one.labels["rule"], one.labels["level_set"])
        for one in family
    }
    planned = {
        (game, budget, rule, level_set)
        for budget, games in context.plan.scope.games.items()
        for game in games
        for rule in context.plan.scope.rules
        for level_set in ("train", "test")
    }
    return sum(floor_family(context, where) == family[0].family for where in planned - present)
