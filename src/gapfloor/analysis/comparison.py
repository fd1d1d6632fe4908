"""Two agents on the same schedule: the rows of the analysis, and the same question paired by level.

A row is the analysis's own difference between two agents (new runs on these levels), with its decision. It also holds
the difference for new runs on new levels, in which the effect of a level on both agents cancels, and for single
checkpoints the difference of these runs on new levels.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.analysis.columns import COMPARED, LABELS, SETTLING
from gapfloor.analysis.difference_rows import agent_difference_rows
from gapfloor.analysis.grouping import Place, RunName, RunSample, StudyEpisodes
from gapfloor.analysis.planned_study import PlannedStudy, holm_within
from gapfloor.analysis.rows import AgentDifferenceRow, Estimate
from gapfloor.errors import UsageError, unknown_name
from gapfloor.plan.model import Plan
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.level_crossing import Episodes, crossed_difference
from gapfloor.statistics.power import POWER, minimum_detectable_effect, runs_to_settle
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table


@dataclass(frozen=True, kw_only=True)
class AgentComparisonRow(AgentDifferenceRow):
    """One game, rule and quantity of two agents on the same schedule, also paired by level."""

    new_runs: Estimate
    """The difference for new runs on new levels, paired by level; NaN unless both agents have two runs."""
    new_runs_p_adjusted: float = NAN
    """Its p after Holm's correction over the family of the row."""
    these_runs: Estimate
    """The difference of exactly these runs on new levels, paired by level."""
    these_runs_p_adjusted: float = NAN
    """Its p after Holm's correction over the family of the row."""
    n_levels: int
    """Levels that both agents played; 0 without level seeds."""
    floor: float
    """The floor's return (its own gap for quantity gap); NaN without one."""
    minimum_detectable: float
    """The smallest difference that these runs find with 80% power at Holm's hardest step."""
    assumed_difference: float
    """The difference for which `runs_needed` is: the one asked for, or the observed one."""
    runs_needed: int | None
    """Runs of each agent that find it on these levels with 80% power; None: out of reach or unknown."""


@dataclass(frozen=True, repr=False)
class Comparison(ReadableResult):
    """Two agents compared on the same schedule."""

    row_names = ("rows",)

    agent_a: str
    """The first agent; differences are first minus second."""
    agent_b: str
    """The second agent."""
    rows: tuple[AgentComparisonRow, ...]
    """One row per game, budget, rule and quantity."""
    alpha: float
    """Level of the tests."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    def row(self, game: str, rule: str, quantity: str, *, budget: str | None = None) -> AgentComparisonRow:
        """The row of a game, rule and quantity."""
        for row in self.rows:
            if (row.game, row.rule, row.quantity) == (game, rule, quantity) and budget in (None, row.budget):
                return row
        raise UsageError(f"There is no row for {game}, {rule}, {quantity}.")

    def tables(self) -> list[Table]:
        """The differences, over runs and paired by level, and how many runs would settle each."""
        labels = [LABELS[name] for name in ("game", "budget", "rule", "quantity")]
        agents = {"mean_a": self.agent_a, "mean_b": self.agent_b}
        compared = [
            dataclasses.replace(column, title=agents.get(key, column.title))
            for key, column in COMPARED.items()
        ]
        return [
            Table(name="compared", columns=(*labels, *compared), rows=self.rows),
            Table(name="settling", columns=(*labels, *SETTLING.values()), rows=self.rows),
        ]

    def sentences(self) -> list[str]:
        """What the columns mean, and what they are about."""
        lines = [
            f"difference: {self.agent_a} - {self.agent_b}. p: Welch over runs, for new runs on these levels. by level: "
            "paired by level, for new runs on new levels. these runs: paired by level, for exactly these runs on "
            "new levels. Holm: over the games of a rule, quantity and budget.",
            f"Needed numbers are for {POWER:.0%} power at Holm's hardest step and assume that the true difference is "
            "the one shown: where the observed one is noise they are noise too; name one that matters with --detect.",
        ]
        if any(min(row.n_runs) < 2 for row in self.rows):
            lines.append(
                "An agent with one run has no run-to-run variance: those rows are about these runs only, and their p "
                "is in the column 'these runs'."
            )
        return lines


def select_agent(
    study: StudyEpisodes,
    agent: str | None = None,
    *,
    source: str,
    budget: str | None = None,
    games: Sequence[str] = (),
    rules: Sequence[str] = (),
) -> StudyEpisodes:
    """The part of a study about one agent (its only one), at a budget, in games and under rules (at all of them)."""
    agents = sorted({run.agent for runs in study.policies.values() for run in runs})
    if agent is None and len(agents) > 1:
        raise UsageError(
            f"{source} holds the agents {', '.join(agents)}: name the two to compare, e.g. --agents "
            f"{','.join(agents[:2])}."
        )
    agent = agents[0] if agent is None else agent
    if agent not in agents:
        raise unknown_name(f"agent in {source}", agent, agents)
    policies = {
        condition: mine
        for condition, runs in study.policies.items()
        if (not games or condition.game in games)
        and (not rules or condition.rule in rules)
        and budget in (None, condition.budget)
        and (mine := {run: sample for run, sample in runs.items() if run.agent == agent})
    }
    if not policies:
        raise UsageError(
            f"{source} has no episodes of {agent} for the games, rules and budgets that were asked for."
        )
    return dataclasses.replace(study, policies=policies, agents=(agent,))


def join_agents(a: StudyEpisodes, b: StudyEpisodes) -> StudyEpisodes:
    """One study that holds the agents of two under two names, at the places that both have."""
    pairs = _pair_places(a, b)
    names = _names(a, b, pairs)
    policies = {
        condition._replace(budget=budget): {
            RunName(name, run.seed): sample
            for name, found in zip(names, (runs, others), strict=True)
            for run, sample in found.items()
        }
        for first, second, budget in pairs
        for condition, runs in a.policies.items()
        if condition.place == first and (others := b.policies.get(condition._replace(budget=second.budget)))
    }
    if not policies:
        raise UsageError(
            f"{a.agents[0]} and {b.agents[0]} were not measured under the same rule on the same level set."
        )
    kept = {condition.rule for condition in policies}
    return dataclasses.replace(
        a,
        policies=policies,
        references={**b.references, **a.references},
        budgets=tuple(dict.fromkeys(budget for _, _, budget in pairs)),
        rules=tuple(dict.fromkeys(rule for rule in (*a.rules, *b.rules) if rule in kept)),
        draws=tuple(dict.fromkeys((*a.draws, *b.draws))),
        agents=names,
    )


def _pair_places(a: StudyEpisodes, b: StudyEpisodes) -> list[tuple[Place, Place, str]]:
    """Which place of a belongs to which of b, and the budget's label: the same budget, or the only one of each."""
    if shared := [place for place in a.places if place in b.places]:
        return [(place, place, place.budget) for place in shared]
    pairs: list[tuple[Place, Place, str]] = []
    for place in a.places:
        mine, theirs = ([other for other in each.places if other[:2] == place[:2]] for each in (a, b))
        if len(mine) > 1 or len(theirs) > 1:
            raise UsageError(
                f"{place.game} has several budgets and none that both agents share: name one per agent, e.g. "
                "--budgets 8M,25M."
            )
        pairs += [(place, other, f"{place.budget or 'none'} v. {other.budget or 'none'}") for other in theirs]
    if not pairs:
        games = [", ".join(sorted({place.game for place in each.places})) for each in (a, b)]
        raise UsageError(
            f"No game was played by both agents: {a.agents[0]} has {games[0]}, {b.agents[0]} has {games[1]}."
        )
    return pairs


def _names(a: StudyEpisodes, b: StudyEpisodes, pairs: Sequence[tuple[Place, Place, str]]) -> tuple[str, str]:
    (first,), (second,) = a.agents, b.agents
    if first != second:
        return first, second
    budgets = {(one.budget, other.budget) for one, other, _ in pairs}
    if len(budgets) == 1 and len(set(both := budgets.pop())) == 2:
        return f"{first} {both[0]}".strip(), f"{first} {both[1]}".strip()
    return f"{first} (A)", f"{first} (B)"


def analyse_comparison(study: StudyEpisodes, *, plan: Plan, detect: float | None = None) -> Comparison:
    """The comparison of a study that holds exactly two agents; runs on different schedules are refused.

    `detect` is the difference for which the needed runs are computed; None: the observed ones.
    """
    notes: tuple[str, ...] = ()
    if not _have_levels(study):
        notes = ("The episodes do not say their levels: nothing could be paired by level.",)
    differences = agent_difference_rows(PlannedStudy(study, plan))
    alpha = plan.floor.alpha

    def family(row: AgentDifferenceRow) -> tuple[str, str]:
        return row.mode, row.decision.family

    sizes = Counter(map(family, differences))
    rows = [_row(study, row, detect, alpha=alpha, family_size=sizes[family(row)]) for row in differences]
    new_runs = holm_within(rows, family, lambda row: row.new_runs.p)
    these_runs = holm_within(rows, family, lambda row: row.these_runs.p)
    rows = [
        dataclasses.replace(row, new_runs_p_adjusted=p, these_runs_p_adjusted=q)
        for row, p, q in zip(rows, new_runs, these_runs, strict=True)
    ]
    return Comparison(study.agents[0], study.agents[1], tuple(rows), alpha, notes)


def _have_levels(study: StudyEpisodes) -> bool:
    """Whether all episodes say their levels; runs that did not play the same levels in the same draws are refused."""
    known = True
    for condition, runs in study.policies.items():
        (first, expected), *others = runs.items()
        for run, sample in others:
            both_known = bool(sample.levels.size and expected.levels.size)
            same = sample.draws == expected.draws and sample.returns.size == expected.returns.size
            if same and both_known:
                same = np.array_equal(sample.levels, expected.levels) and np.array_equal(
                    sample.draw, expected.draw
                )
            if not same:
                schedules = [
                    f"{each.returns.size} episodes in the draws {', '.join(each.draws)}"
                    for each in (expected, sample)
                ]
                raise UsageError(
                    f"{first} and {run} did not play the same schedule on {condition.game}, {condition.rule}, "
                    f"{condition.level_set} ({' against '.join(schedules)}): evaluate both with "
                    "the same draws, episodes and levels."
                )
            known = known and both_known
    return known


def _row(
    study: StudyEpisodes, row: AgentDifferenceRow, detect: float | None, *, alpha: float, family_size: int
) -> AgentComparisonRow:
    place = Place(row.game, row.mode, row.budget)
    level_sets = ("train", "test") if row.quantity == "gap" else (row.quantity,)
    halves = [study.runs(place, row.rule, name) for name in level_sets]
    # A run that was measured on one half only has no gap. Seeds have the same order on every level set.
    shared = sorted(set(halves[0]).intersection(*halves))

    def episodes(half: dict[RunName, RunSample], agent: str) -> list[Episodes]:
        return [(half[run].returns, half[run].levels) for run in shared if run.agent == agent]

    first, second = study.agents
    crossed = crossed_difference(
        [
            (sign, episodes(half, first), episodes(half, second))
            for half, sign in zip(halves, (1.0, -1.0), strict=False)
        ]
    )
    means = [NAN if (floor := study.floor(place, name)) is None else floor.mean for name in level_sets]
    found, (n_a, n_b) = row.difference, row.n_runs
    assumed = found.value if detect is None else math.copysign(detect, found.value)
    sds = row.sem * math.sqrt(n_a), row.sem_b * math.sqrt(n_b)
    sized: dict[str, Any] = {"family_size": family_size, "alpha": alpha}
    return AgentComparisonRow(
        **{each.name: getattr(row, each.name) for each in dataclasses.fields(row)},
        new_runs=crossed.new_runs,
        these_runs=crossed.these_runs,
        n_levels=crossed.n_levels,
        floor=means[0] - means[1] if len(means) == 2 else means[0],
        minimum_detectable=minimum_detectable_effect(se=found.se, df=found.df, **sized),
        assumed_difference=assumed,
        runs_needed=runs_to_settle(*sds, assumed, **sized),
    )
