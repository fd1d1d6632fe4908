"""The runs of two agents, selected from recorded episodes and joined into one study on the same schedule."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from gapfloor.analysis.grouping import Condition, RunName, RunSample, StudyEpisodes
from gapfloor.errors import UsageError, unknown_name

#: Game, mode and budget.
Place = tuple[str, str, str]


@dataclass(frozen=True)
class ComparisonRequest:
    """What is to be compared; empty or None accepts everything."""

    agents: tuple[str, str] | None = None
    budgets: tuple[str, ...] = ()
    """One for both agents, or one per agent."""
    games: tuple[str, ...] = ()
    """The engine's own names of the games, without a prefix such as `gym:`."""
    rules: tuple[str, ...] = ()

    def budget(self, number: int) -> str | None:
        """The budget of the first or the second agent."""
        if not self.budgets:
            return None
        return self.budgets[number if len(self.budgets) > 1 else 0]


@dataclass(frozen=True)
class AgentRuns:
    """One agent's runs by place, rule and level set."""

    agent: str
    study: StudyEpisodes
    runs: dict[Place, dict[tuple[str, str], dict[RunName, RunSample]]]


def select_agent(study: StudyEpisodes, asked: ComparisonRequest, number: int, *, source: str) -> AgentRuns:
    """The runs of one agent of a study, as asked for."""
    agents = {run.agent for runs in study.policies.values() for run in runs}
    if asked.agents is not None:
        agent = asked.agents[number]
        if agent not in agents:
            raise unknown_name(f"agent in {source}", agent, agents)
    elif len(agents) == 1:
        agent = next(iter(agents))
    else:
        raise UsageError(
            f"{source} holds the agents {', '.join(sorted(agents))}: name the two to compare, e.g. --agents "
            f"{','.join(sorted(agents)[:2])}."
        )
    runs: dict[Place, dict[tuple[str, str], dict[RunName, RunSample]]] = {}
    for condition, by_run in study.policies.items():
        mine = {run: sample for run, sample in by_run.items() if run.agent == agent}
        if mine and _is_asked(condition, asked, number):
            place = (condition.game, condition.mode, condition.budget)
            runs.setdefault(place, {})[condition.rule, condition.level_set] = mine
    if not runs:
        raise UsageError(
            f"{source} has no episodes of {agent} for the games, rules and budgets that were asked for."
        )
    return AgentRuns(agent, study, runs)


def _is_asked(condition: Condition, asked: ComparisonRequest, number: int) -> bool:
    budget = asked.budget(number)
    return (
        (not asked.games or condition.game in asked.games)
        and (not asked.rules or condition.rule in asked.rules)
        and (budget is None or condition.budget == budget)
    )


def join_agents(a: AgentRuns, b: AgentRuns) -> StudyEpisodes:
    """One study that holds both agents under two names, at the places that both have."""
    pairs = _pair_places(a, b)
    names = _names(a, b, pairs)
    policies: dict[Condition, dict[RunName, RunSample]] = {}
    for (place_a, place_b), budget in pairs.items():
        for rule, level_set in a.runs[place_a]:
            if (rule, level_set) not in b.runs[place_b]:
                continue
            condition = Condition(place_a[0], place_a[1], budget, rule, level_set)
            policies[condition] = {
                RunName(name, run.seed): sample
                for name, runs in zip(names, (a.runs[place_a], b.runs[place_b]), strict=True)
                for run, sample in runs[rule, level_set].items()
            }
    if not policies:
        raise UsageError(
            f"{a.agent} and {b.agent} were not measured under the same rule on the same level set."
        )
    kept_rules = {condition.rule for condition in policies}
    references = {**b.study.references, **a.study.references}
    return dataclasses.replace(
        a.study,
        policies=policies,
        references=references,
        budgets=tuple(dict.fromkeys(pairs.values())),
        rules=tuple(dict.fromkeys(rule for rule in (*a.study.rules, *b.study.rules) if rule in kept_rules)),
        draws=tuple(dict.fromkeys((*a.study.draws, *b.study.draws))),
        agents=names,
    )


def _pair_places(a: AgentRuns, b: AgentRuns) -> dict[tuple[Place, Place], str]:
    """Which place of a belongs to which of b, with the budget's label: the same budget, or the only one of each."""
    pairs: dict[tuple[Place, Place], str] = {}
    for budget in (*a.study.budgets, *sorted({p[2] for p in a.runs} - set(a.study.budgets))):
        for place in (p for p in a.runs if p[2] == budget and p in b.runs):
            pairs[place, place] = place[2]
    if pairs:
        return pairs
    for place in a.runs:
        mine = [p for p in a.runs if p[:2] == place[:2]]
        theirs = [p for p in b.runs if p[:2] == place[:2]]
        if len(mine) > 1 or len(theirs) > 1:
            raise UsageError(
                f"{place[0]} has several budgets and none that both agents share: name one per agent, e.g. "
                "--budgets 8M,25M."
            )
        if theirs:
            pairs[place, theirs[0]] = " v. ".join(part or "none" for part in (place[2], theirs[0][2]))
    if not pairs:
        raise UsageError(
            f"No game was played by both agents: {a.agent} has {', '.join(sorted({p[0] for p in a.runs}))}, {b.agent} "
            f"has {', '.join(sorted({p[0] for p in b.runs}))}."
        )
    return pairs


def _names(a: AgentRuns, b: AgentRuns, pairs: dict[tuple[Place, Place], str]) -> tuple[str, str]:
    if a.agent != b.agent:
        return a.agent, b.agent
    budgets = {(first[2], second[2]) for first, second in pairs}
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
