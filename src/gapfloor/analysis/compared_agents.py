"""The runs of two agents, selected from recorded episodes and joined into one study on the same schedule."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapfloor.analysis.grouping import Condition, Place, RunName, RunSample, StudyEpisodes
from gapfloor.errors import UsageError, unknown_name


@dataclass(frozen=True)
class AgentRuns:
    """One agent's runs."""

    agent: str
    study: StudyEpisodes
    runs: dict[Condition, dict[RunName, RunSample]]

    @property
    def places(self) -> dict[Place, None]:
        """Where the agent was measured, in the order of the data."""
        return dict.fromkeys(condition.place for condition in self.runs)


def select_agent(
    study: StudyEpisodes,
    agent: str | None = None,
    *,
    source: str,
    budget: str | None = None,
    games: Sequence[str] = (),
    rules: Sequence[str] = (),
) -> AgentRuns:
    """The runs of one agent of a study (of its only one), at a budget, in games and under rules (at all of them)."""
    agents = sorted({run.agent for runs in study.policies.values() for run in runs})
    if agent is None and len(agents) > 1:
        raise UsageError(
            f"{source} holds the agents {', '.join(agents)}: name the two to compare, e.g. --agents "
            f"{','.join(agents[:2])}."
        )
    agent = agents[0] if agent is None else agent
    if agent not in agents:
        raise unknown_name(f"agent in {source}", agent, agents)
    runs = {
        condition: {run: sample for run, sample in by_run.items() if run.agent == agent}
        for condition, by_run in study.policies.items()
        if (not games or condition.game in games)
        and (not rules or condition.rule in rules)
        and budget in (None, condition.budget)
    }
    runs = {condition: by_run for condition, by_run in runs.items() if by_run}
    if not runs:
        raise UsageError(
            f"{source} has no episodes of {agent} for the games, rules and budgets that were asked for."
        )
    return AgentRuns(agent, study, runs)


def join_agents(a: AgentRuns, b: AgentRuns) -> StudyEpisodes:
    """One study that holds both agents under two names, at the places that both have."""
    pairs = _pair_places(a, b)
    names = _names(a, b, pairs)
    policies: dict[Condition, dict[RunName, RunSample]] = {}
    for (place_a, place_b), budget in pairs.items():
        for first in (condition for condition in a.runs if condition.place == place_a):
            second = Condition(*place_b, first.rule, first.level_set)
            if second in b.runs:
                policies[first._replace(budget=budget)] = {
                    RunName(name, run.seed): sample
                    for name, runs in zip(names, (a.runs[first], b.runs[second]), strict=True)
                    for run, sample in runs.items()
                }
    if not policies:
        raise UsageError(
            f"{a.agent} and {b.agent} were not measured under the same rule on the same level set."
        )
    kept_rules = {condition.rule for condition in policies}
    return dataclasses.replace(
        a.study,
        policies=policies,
        references={**b.study.references, **a.study.references},
        budgets=tuple(dict.fromkeys(pairs.values())),
        rules=tuple(dict.fromkeys(rule for rule in (*a.study.rules, *b.study.rules) if rule in kept_rules)),
        draws=tuple(dict.fromkeys((*a.study.draws, *b.study.draws))),
        agents=names,
    )


def _pair_places(a: AgentRuns, b: AgentRuns) -> dict[tuple[Place, Place], str]:
    """Which place of a belongs to which of b, with the budget's label: the same budget, or the only one of each."""
    order = (*a.study.budgets, *sorted({place.budget for place in a.places} - set(a.study.budgets)))
    shared = sorted(
        (place for place in a.places if place in b.places), key=lambda one: order.index(one.budget)
    )
    if shared:
        return {(place, place): place.budget for place in shared}
    pairs: dict[tuple[Place, Place], str] = {}
    for place in a.places:
        mine, theirs = ([other for other in each.places if other[:2] == place[:2]] for each in (a, b))
        if len(mine) > 1 or len(theirs) > 1:
            raise UsageError(
                f"{place.game} has several budgets and none that both agents share: name one per agent, e.g. "
                "--budgets 8M,25M."
            )
        for other in theirs:
            pairs[place, other] = " v. ".join(part or "none" for part in (place.budget, other.budget))
    if not pairs:
        games = [", ".join(sorted({place.game for place in each.places})) for each in (a, b)]
        raise UsageError(
            f"No game was played by both agents: {a.agent} has {games[0]}, {b.agent} has {games[1]}."
        )
    return pairs


def _names(a: AgentRuns, b: AgentRuns, pairs: dict[tuple[Place, Place], str]) -> tuple[str, str]:
    if a.agent != b.agent:
        return a.agent, b.agent
    budgets = {(first.budget, second.budget) for first, second in pairs}
    if len(budgets) == 1:
        first, second = next(iter(budgets))
        if first != second:
            return f"{a.agent} {first}".strip(), f"{b.agent} {second}".strip()
    return f"{a.agent} (A)", f"{b.agent} (B)"


def check_schedules(study: StudyEpisodes) -> bool:
    """Refuse runs that did not play the same levels in the same draws; False where levels are unknown."""
    known = True
    for condition, runs in study.policies.items():
        (first, expected), *others = runs.items()
        for run, sample in others:
            same = sample.draws == expected.draws and sample.returns.size == expected.returns.size
            both_known = sample.levels.size and expected.levels.size
            if same and both_known:
                same = np.array_equal(sample.levels, expected.levels) and np.array_equal(
                    sample.draw, expected.draw
                )
            if not same:
                raise UsageError(
                    f"{first} and {run} did not play the same schedule on {condition.game}, {condition.rule}, "
                    f"{condition.level_set} ({_schedule(expected)} against {_schedule(sample)}): evaluate both with "
                    "the same draws, episodes and levels."
                )
            known = known and bool(both_known)
    return known


def _schedule(sample: RunSample) -> str:
    return f"{sample.returns.size} episodes in the draws {', '.join(sample.draws)}"
