"""What a reader must know about the data before believing a number, and what binds an analysis to its plan.

Gaps in the grid, copies, missing floors and data that differ from what the plan says are problems; some of them end an
analysis under a locked plan. A name that occurs nowhere (a reference, an agent, a rule) is a mistake in the plan and is
refused whether the plan is locked or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from gapfloor.analysis.grouping import MOST_AGENTS, Condition, Place, StudyEpisodes, levels_of
from gapfloor.analysis.inputs import FLOOR_RULE, Inputs
from gapfloor.analysis.known_floors import find_known_floor
from gapfloor.analysis.planned_study import BOTH
from gapfloor.analysis.results import Problem
from gapfloor.errors import UsageError, nearest_names
from gapfloor.levels.schedule import LevelSet
from gapfloor.plan.lock import LockedPlan
from gapfloor.plan.model import PairTest, Plan, split_difference

#: The kind of a problem, where it is, and what it is.
Found = Iterator[tuple[Any, str, str]]
_NO_EPISODES = "the plan names it; no episodes"


def find_problems(study: StudyEpisodes, inputs: Inputs, plan: Plan) -> tuple[Problem, ...]:
    """Everything that is missing, unbalanced, copied or assumed, cell by cell."""
    return _as_problems(_all(study, inputs, plan))


def departures(study: StudyEpisodes, plan: Plan) -> tuple[Problem, ...]:
    """Where the data are not what a plan says: rules, agents, numbers of runs, levels."""
    return _as_problems(_departures(study, plan))


def _as_problems(found: Found) -> tuple[Problem, ...]:
    return tuple(Problem(kind=kind, where=where, what=what) for kind, where, what in found)


def _all(study: StudyEpisodes, inputs: Inputs, plan: Plan) -> Found:
    for text in inputs.assumed:
        yield "assumed", "the source", text
    if (n := len(study.agents)) > MOST_AGENTS:
        what = f"{n:,} agents: differences between agents are left out above {MOST_AGENTS}"
        yield "assumed", "the source", what
    for name in inputs.damaged:
        yield "missing", f"cell {name}", "the cell is cut or altered and counts as missing"
    for name in inputs.replay_failures:
        yield "replay", name, "played again, the episode did not give its recorded return"
    yield from _outside_plan(study, plan)
    for place in study.places:
        conditions = [condition for condition in study.conditions if condition.place == place]
        yield from _missing_cells(study, place)
        yield from _unbalanced_cells(study, conditions, plan)
        yield from _floors(study, place, plan)
        for condition in conditions:
            n = len(study.policies[condition])
            what = f"{n} runs, where a call needs {plan.least_runs}: they are described, but not tested"
            if n == 1:
                what = "one run: it is described, but not tested, and does not count in its family"
            if n < plan.least_runs:
                yield "too few", place.words(condition.rule, condition.level_set), what
    if "all" not in (plan.scope.train, plan.scope.test):
        for place, rule in product(study.places, study.rules):
            train, test = (levels_of(study.runs(place, rule, name).values()) for name in BOTH)
            both = np.intersect1d(train, test, assume_unique=True)
            if both.size:
                what = f"{both.size} levels were played both as training and as held-out levels, for example {both[0]}"
                yield "levels", place.words(rule), what
    for copy in study.copies:
        first = copy.place._replace(budget=copy.first_budget).words(str(copy.first))
        what = f"{copy.episodes} equals one of {first}: copies of one checkpoint are one run, not two"
        yield "copy", copy.place.words(str(copy.run)), what


def _outside_plan(study: StudyEpisodes, plan: Plan) -> Found:
    """Games that the plan names and the data lack."""
    present = {(place.game, place.budget) for place in study.places}
    for budget, games in plan.scope.games.items():
        for game in games:
            if (game, budget) not in present:
                yield "missing", f"{game}, {budget}", _NO_EPISODES
    for place in study.places if plan.scope.games else ():
        for rule in plan.scope.rules if plan.names(game=place.game, budget=place.budget) else ():
            for level_set in BOTH:
                if not study.runs(place, rule, level_set):
                    yield "missing", place.words(rule, level_set), _NO_EPISODES


def _missing_cells(study: StudyEpisodes, place: Place) -> Found:
    """Cells that other runs of the same game and budget have."""
    here = [runs for condition, runs in study.policies.items() if condition.place == place]
    everyone = sorted({run for runs in here for run in runs})
    for rule in study.rules:
        by_set = {ls: runs for ls in study.level_sets if (runs := study.runs(place, rule, ls))}
        draws = sorted({d for runs in by_set.values() for sample in runs.values() for d in sample.draws})
        for run in everyone if by_set else ():
            if not any(run in runs for runs in by_set.values()):
                what = "no episodes under this rule, which other runs have; it is not in this rule's rows"
                yield "missing", place.words(str(run), rule), what
                continue
            for level_set, runs in by_set.items():
                where = place.words(str(run), rule, level_set)
                if run not in runs:
                    what = "the run lacks this half; it is not in this level set's row nor in the gap"
                    yield "missing", where, what
                    continue
                for draw in (draw for draw in draws if draw not in runs[run].draws):
                    what = "no episodes on this draw; the run's value is the mean of its other draws"
                    yield "missing", f"{where}, draw {draw}", what


def _unbalanced_cells(study: StudyEpisodes, conditions: Sequence[Condition], plan: Plan) -> Found:
    """Draws with another number of episodes than the plan says, or than most have."""
    # What the plan fixes is missing if it is not so; what is merely usual is not.
    kind, words = ("missing", "planned") if plan.scope.episodes else ("unbalanced", "usual")
    for condition in conditions:
        where = condition.rule, condition.level_set
        runs = study.policies[condition]
        counts = {(run, draw): n for run, s in runs.items() for draw, n in s.draw_counts().items()}
        usual = plan.scope.episodes or Counter(sorted(counts.values())).most_common(1)[0][0]
        for (run, draw), n in counts.items():
            if n != usual:
                what = f"{n} episodes, where {usual} are {words}"
                yield kind, condition.place.words(str(run), *where, f"draw {draw}"), what
        draws = {draw for _, draw in counts}
        if plan.scope.draws and len(draws) != plan.scope.draws:
            what = f"{len(draws)} draws, where the plan says {plan.scope.draws}"
            yield "missing", condition.place.words(*where), what


def _floors(study: StudyEpisodes, place: Place, plan: Plan) -> Found:
    """Level sets without a floor, and floors on other draws than the policies'."""
    for level_set in study.level_sets:
        samples = [s for rule in study.rules for s in study.runs(place, rule, level_set).values()]
        if not samples:
            continue
        reference = plan.floor.reference
        floor = study.floor(place, level_set, reference=reference)
        if floor is None:
            remedy = "measure the floor, or state it (--floor 3.1±0.2)"
            if find_known_floor(place.game, place.mode, level_set):
                remedy = "for a table, --floor registry takes the floor that ships with gapfloor"
            what = (
                f"no episodes with rule '{reference}'; returns on this level set are not compared: {remedy}"
            )
            yield "no floor", place.words(level_set), what
            continue
        if floor.returns.size == 1:
            value = f"{floor.mean:.4g}"
            what = f"one value ({value}) has no error; state its mean and standard error, e.g. --floor '{value}±0.1'"
            yield "no floor", place.words(level_set), what
            continue
        where = place.words(level_set, "floor")
        draws = {draw for sample in samples for draw in sample.draws}
        if draws != set(floor.draws):
            what = (
                f"the floor's draws ({', '.join(floor.draws)}) are not the policies' "
                f"({', '.join(sorted(draws))}): they are not on identical levels"
            )
            yield "unbalanced", where, what
        played, own = levels_of(samples), levels_of([floor])
        others = np.setdiff1d(own, played, assume_unique=True).size if played.size else 0
        if others:
            what = f"{others} of the {own.size} levels that it was measured on were not played by the runs"
            if others == own.size:
                what = "it was measured on other levels than the runs: they have no level in common"
            yield "unbalanced", where, what
        counts = sorted(set(floor.draw_counts().values()))
        if len(counts) > 1:
            what = f"its draws hold different numbers of episodes ({', '.join(map(str, counts))})"
            yield "unbalanced", where, what


def refuse_unknown_names(study: StudyEpisodes, locked: LockedPlan) -> None:
    """Refuse a plan that names a reference, an agent or a rule which neither the plan nor the data have."""
    plan = locked.plan
    if not plan.stop.value_not_finite:
        raise UsageError(
            "The plan says stop.value_not_finite = false, but returns that are not finite cannot be analysed. "
            "Set it to true, and leave such episodes out of the data yourself."
        )
    references = sorted({where.rule for where in study.references})
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
    for rule in [rule for text in named for rule in split_difference(text, source="the plan")]:
        if rule not in rules:
            raise UsageError(
                f"The plan names the rule '{rule}' (pairs.differences), which neither scope.rules nor the data "
                f"have: {nearest_names(rule, sorted(rules))}"
            )


def _departures(study: StudyEpisodes, plan: Plan) -> Found:
    """Rules, agents, numbers of runs and seeds that differ from the plan's, and levels outside their level set."""
    scope = plan.scope
    for rule in (rule for rule in scope.rules if rule not in study.rules):
        yield "missing", rule, "the plan names this rule; no episodes"
    has_scope = any(each is not None for each in (scope.agents, scope.runs, scope.seeds))
    for place in study.places if has_scope else ():
        if not plan.names(game=place.game, budget=place.budget):
            continue
        here = {run for condition, runs in study.policies.items() if condition.place == place for run in runs}
        here -= {copy.run for copy in study.copies if copy.place == place}
        present = {run.agent for run in here}
        for agent in scope.agents or sorted(present):
            seeds = {run.seed for run in here if run.agent == agent}
            n, where = sum(run.agent == agent for run in here), place.words(agent)
            if not n:
                yield "missing", where, "the plan names this agent; no episodes"
                continue
            if scope.runs is not None and n != scope.runs:
                yield "missing", where, f"{n} different runs, where the plan says {scope.runs}"
            if scope.seeds is not None and seeds != set(scope.seeds):
                what = f"seeds {', '.join(sorted(seeds))}, where the plan says {', '.join(scope.seeds)}"
                yield "missing", where, what
        for agent in sorted(present - set(scope.agents or present)):
            what = "the plan does not name this agent, whose runs would enter the pooled rows"
            yield "missing", place.words(agent), what
    planned = {"train": LevelSet.parse(scope.train), "test": LevelSet.parse(scope.test)}
    for (game, _, budget, rule, level_set), runs in study.policies.items():
        if level_set not in planned or not plan.names(game=game, budget=budget):
            continue
        levels = levels_of(runs.values()).tolist()
        outside = [seed for seed in levels if seed not in planned[level_set]]
        if outside:
            where = ", ".join(part for part in (game, budget, rule, level_set) if part)
            what = (
                f"{len(outside)} of {len(levels)} levels are outside the plan's {planned[level_set]}, "
                f"for example {outside[0]}"
            )
            yield "levels", where, what
