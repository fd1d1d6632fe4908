"""What binds an analysis to its plan: names that the data do not have are refused, and what the plan fixes is compared.

A name that occurs nowhere (a reference, an agent, a rule) is a mistake in the plan and is refused whether the plan is
locked or not. Data that differ from what the plan says are problems; they end an analysis under a locked plan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.copies import RunCopy
from gapfloor.analysis.grouping import StudyEpisodes
from gapfloor.analysis.results import Problem
from gapfloor.errors import UsageError, nearest_names
from gapfloor.levels.level_set import LevelSet
from gapfloor.plan.lock import LockedPlan
from gapfloor.plan.model import PairTest, Plan, split_difference
from gapfloor.statistics.distinct import distinct


def refuse_unknown_names(study: StudyEpisodes, locked: LockedPlan) -> None:
    """Refuse a plan that names a reference, an agent or a rule which neither the plan nor the data have."""
    plan = locked.plan
    if not plan.stop.value_not_finite:
        raise UsageError(
            "The plan says stop.value_not_finite = false, but returns that are not finite cannot be analysed. "
            "Set it to true, and leave such episodes out of the data yourself."
        )
    references = sorted({place.reference for place in study.references})
    if plan.floor.reference not in {FLOOR_RULE, *references}:
        raise UsageError(
            f"The plan compares with the reference '{plan.floor.reference}' (floor.reference), which the data do not "
            f"have: {nearest_names(plan.floor.reference, references)}"
        )
    for agent in plan.agents.order:
        if agent not in study.agents:
            raise UsageError(
                f"The plan names the agent '{agent}' (agents.order), which the data do not have: "
                f"{nearest_names(agent, study.agents)}"
            )
    added = {rule for addendum, _ in locked.addenda for rule in addendum.rules}
    rules = {*plan.scope.rules, *study.rules, *added}
    # A plan that says nothing about pairs has the paper's difference, also where it is about one rule.
    named = () if plan.pairs == PairTest() else plan.pairs.differences
    for difference in named:
        for rule in split_difference(difference, source="the plan"):
            if rule not in rules:
                raise UsageError(
                    f"The plan names the rule '{rule}' (pairs.differences), which neither scope.rules nor the data "
                    f"have: {nearest_names(rule, sorted(rules))}"
                )


def departures(study: StudyEpisodes, plan: Plan, copies: tuple[RunCopy, ...]) -> tuple[Problem, ...]:
    """Where the data are not what a plan says: rules, agents, numbers of runs, levels."""
    return (*_rules(study, plan), *_runs(study, plan, copies), *_levels(study, plan))


def _rules(study: StudyEpisodes, plan: Plan) -> Iterator[Problem]:
    for rule in plan.scope.rules:
        if rule not in study.rules:
            yield Problem(kind="missing", where=rule, what="the plan names this rule; no episodes")


def _runs(study: StudyEpisodes, plan: Plan, copies: tuple[RunCopy, ...]) -> Iterator[Problem]:
    if plan.scope.agents is None and plan.scope.runs is None:
        return
    for game, mode, budget in study.places():
        if not plan.names(game=game, budget=budget):
            continue
        here = {run for c, runs in study.policies.items() if c[:3] == (game, mode, budget) for run in runs}
        here -= {copy.run for copy in copies if (copy.game, copy.mode, copy.budget) == (game, mode, budget)}
        present = {run.agent for run in here}
        where = ", ".join(part for part in (game, mode if mode != "easy" else "", budget) if part)
        for agent in plan.scope.agents or sorted(present):
            n = sum(run.agent == agent for run in here)
            wanted = plan.scope.runs
            if not n:
                what = "the plan names this agent; no episodes"
                yield Problem(kind="missing", where=f"{where}, {agent}", what=what)
            elif wanted is not None and n != wanted:
                what = f"{n} different runs, where the plan says {wanted}"
                yield Problem(kind="missing", where=f"{where}, {agent}", what=what)
        for agent in sorted(present - set(plan.scope.agents or present)):
            what = "the plan does not name this agent, whose runs would enter the pooled rows"
            yield Problem(kind="missing", where=f"{where}, {agent}", what=what)


def _levels(study: StudyEpisodes, plan: Plan) -> Iterator[Problem]:
    """Episodes on levels that do not belong to the level set that they are filed under."""
    planned = {"train": LevelSet.parse(plan.scope.train), "test": LevelSet.parse(plan.scope.test)}
    for condition, runs in study.policies.items():
        game, _, budget, rule, level_set = condition
        if level_set not in planned or not plan.names(game=game, budget=budget):
            continue
        seeds = distinct(np.concatenate([sample.levels for sample in runs.values()]))
        outside = [int(seed) for seed in seeds if int(seed) not in planned[level_set]]
        if outside:
            yield Problem(
                kind="levels",
                where=", ".join(part for part in (game, budget, rule, level_set) if part),
                what=f"{len(outside)} of {seeds.size} levels are outside the plan's {planned[level_set]}, "
                f"for example {outside[0]}",
            )
