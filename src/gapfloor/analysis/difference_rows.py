"""Rows about differences: between rules of the same runs, and between agents."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from gapfloor.analysis.grouping import Place, RunName, RunSample
from gapfloor.analysis.planned_study import BOTH, PlannedStudy, families_of, holm_within
from gapfloor.analysis.rows import (
    AgentDifferenceRow,
    AgentRow,
    Decision,
    Quantity,
    RuleDifferenceRow,
)
from gapfloor.plan.model import split_difference
from gapfloor.statistics.conventions import NAN, Floats, Tier, sem
from gapfloor.statistics.families import word_of
from gapfloor.statistics.paired import (
    AgentSample,
    agent_sample,
    difference_of_agents,
    paired_difference,
)
from gapfloor.statistics.run_shape import FamilyShape, family_shape
from gapfloor.statistics.signflip import sign_flip_test
from gapfloor.statistics.welch import moments, welch_of_moments

QUANTITIES: tuple[Quantity, ...] = ("train", "test", "gap")


def run_values(
    context: PlannedStudy,
    place: Place,
    rule: str,
    quantity: Quantity,
    *,
    draw: str | None = None,
    agent: str | None = None,
) -> dict[RunName, float]:
    """One value per run: its return on a level set, or its gap; on all draws, or on one."""

    def mean(sample: RunSample) -> float:
        return sample.mean if draw is None else sample.draw_means.get(draw, NAN)

    if quantity == "gap":
        both = context.study.halves(place, rule, agent=agent)
        values = {name: mean(train) - mean(test) for name, (train, test) in both.items()}
    else:
        values = {name: mean(s) for name, s in context.study.runs(place, rule, quantity, agent=agent).items()}
    return {name: value for name, value in values.items() if not math.isnan(value)}


def pair_rows(context: PlannedStudy) -> tuple[RuleDifferenceRow, ...]:
    """The plan's and the addenda's differences between rules, of each of the plan's pools."""
    wanted: list[tuple[tuple[str, str], Sequence[Quantity]]] = [
        (split_difference(text, source="the plan"), context.plan.pairs.quantities)
        for text in context.plan.pairs.differences
    ]
    for addendum, _ in context.locked.addenda if context.locked else ():
        wanted += [
            (split_difference(text, source=addendum.name), addendum.quantities) for text in addendum.pairs
        ]
    named = {(pair, quantity) for pair, quantities in wanted for quantity in quantities}
    # A merged rule is always compared with the greedy rule that it repairs.
    if "merged" in context.study.rules and ("merged", "greedy") not in {pair for pair, _ in named}:
        wanted.append((("merged", "greedy"), QUANTITIES))
    rows = []
    for agent in context.pools:
        for place in context.study.places:
            for rules, quantities in wanted:
                for quantity in quantities:
                    unnamed = context.beyond_looks
                    if (rules, quantity) not in named:
                        unnamed = f"the plan does not name the difference {rules[0]} - {rules[1]}"
                    row = _pair(context, place, rules, quantity, agent, unnamed)
                    rows += [row] if row is not None else []
    adjusted = holm_within(
        rows,
        lambda row: (row.mode, row.budget, row.agent, row.rule, row.rule_b, row.quantity),
        lambda row: row.difference.p,
    )
    return tuple(dataclasses.replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True))


def _pair(
    context: PlannedStudy,
    place: Place,
    rules: tuple[str, str],
    quantity: Quantity,
    agent: str | None,
    unnamed: str,
) -> RuleDifferenceRow | None:
    first, second = (run_values(context, place, rule, quantity, agent=agent) for rule in rules)
    shared = sorted(set(first) & set(second))
    if not shared:
        return None
    row = context.row(
        "pair", place, n=len(shared), rules=rules, level_sets=BOTH if quantity == "gap" else (quantity,),
        names=(quantity, *([agent] if agent is not None else [])), unnamed=unnamed,
    )  # fmt: skip
    a, b = np.array([first[run] for run in shared]), np.array([second[run] for run in shared])
    rng = context.rng(row["seed"])
    difference = paired_difference(a, b, rng=rng, method=context.floor_method, **context.resampling)
    return RuleDifferenceRow(
        **row,
        agent=agent,
        rule=rules[0],
        rule_b=rules[1],
        quantity=quantity,
        difference=difference,
        runs_first_higher=int(np.count_nonzero(a > b)),
        runs_second_higher=int(np.count_nonzero(b > a)),
        p_sign_flip=sign_flip_test(a - b, rng=rng).p,
    )


def agent_difference_rows(context: PlannedStudy) -> tuple[AgentDifferenceRow, ...]:
    """Every pair of agents, for every rule and quantity, pooled over draws and one draw at a time.

    Holm's correction is over the games and pairs of agents of a rule, quantity and budget.
    """
    rows: list[AgentDifferenceRow] = []
    for place in context.study.places:
        for rule in context.study.rules:
            found = {quantity: _pairs_of_agents(context, place, rule, quantity) for quantity in QUANTITIES}
            for agents in combinations(context.study.agents, 2):
                train, gap = found["train"].get(agents), found["gap"].get(agents)
                if train is not None and gap is not None:
                    whole = gap.difference.value
                    share = train.difference.value / whole if whole else NAN
                    found["gap"][agents] = dataclasses.replace(gap, share_from_training=share)
                rows += [found[quantity][agents] for quantity in QUANTITIES if agents in found[quantity]]
    return _decided(context, rows)


def _decided(context: PlannedStudy, rows: list[AgentDifferenceRow]) -> tuple[AgentDifferenceRow, ...]:
    least = context.plan.least_runs

    def family(row: AgentDifferenceRow) -> tuple[str, ...]:
        return row.mode, row.budget, row.rule, row.quantity

    def tested_p(row: AgentDifferenceRow) -> float:
        return row.difference.p if min(row.n_runs) >= least else NAN

    adjusted = holm_within(rows, family, tested_p)
    decided = list(rows)
    for members in families_of(rows, family):
        size = sum(not math.isnan(adjusted[i]) for i in members)
        shapes = _Shapes(context, [rows[i] for i in members])
        for i in members:
            row = rows[i]
            words = ("first higher", "second higher")
            call = word_of(adjusted[i], row.difference.value, words, alpha=context.plan.floor.alpha)
            reason = (
                "the runs do not differ"
                if min(row.n_runs) >= least
                else f"{row.n_runs[0]} and {row.n_runs[1]} runs"
            )
            doubt = shapes.doubt(row) if call in words else ""
            if doubt:
                call, reason = "not tested", doubt
            decision = Decision(
                call=call,
                p_adjusted=adjusted[i],
                family=f"agents: {', '.join(part for part in (row.rule, row.quantity, row.budget) if part)}",
                family_size=size,
                reason=reason if call == "not tested" else "",
            )
            decided[i] = dataclasses.replace(row, decision=decision)
    return tuple(decided)


class _Shapes:
    """Why a family's agents may not be called higher or lower by the shape of their runs; for the recommended method.

    Each agent's shape is that of its runs in all games of the family, as for calls against the floor.
    """

    def __init__(self, context: PlannedStudy, rows: Sequence[AgentDifferenceRow]) -> None:
        self.context, self.rows = context, rows
        self._known: dict[str, FamilyShape] = {}

    def doubt(self, row: AgentDifferenceRow) -> str:
        """Empty where nothing forbids the call that the difference asks for."""
        if self.context.floor_method != "recommended":
            return ""
        agents = (str(row.agent), row.agent_b)
        higher, lower = (
            self._shape(agent) for agent in (agents if row.difference.value > 0 else agents[::-1])
        )
        if higher.has_two_groups or lower.has_two_groups:
            return "the runs form two groups"
        return "the runs may be skewed" if higher.is_left_skewed or lower.is_right_skewed else ""

    def _shape(self, agent: str) -> FamilyShape:
        if agent not in self._known:
            places = dict.fromkeys(Place(row.game, row.mode, row.budget) for row in self.rows)
            rule, quantity = self.rows[0].rule, self.rows[0].quantity
            found = (run_values(self.context, place, rule, quantity, agent=agent) for place in places)
            self._known[agent] = family_shape([np.array(list(values.values())) for values in found])
        return self._known[agent]


def _by_agent(values: dict[RunName, float]) -> dict[str, Floats]:
    lists: dict[str, list[float]] = {}
    for run, value in values.items():
        lists.setdefault(run.agent, []).append(value)
    return {agent: np.sort(found) for agent, found in lists.items()}


def _pairs_of_agents(
    context: PlannedStudy, place: Place, rule: str, quantity: Quantity
) -> dict[tuple[str, str], AgentDifferenceRow]:
    """The differences between all agents measured here. What one agent contributes is computed once."""
    every = _by_agent(run_values(context, place, rule, quantity))
    values = {agent: agent_sample(found, agent) for agent, found in every.items()}
    pairs = list(combinations([agent for agent in context.study.agents if agent in values], 2))
    draws: dict[tuple[str, str], list[float]] = {pair: [] for pair in pairs}
    for draw in context.study.draws if pairs and context.plan.agents.one_draw_at_a_time else ():
        here = _by_agent(run_values(context, place, rule, quantity, draw=draw))
        known = {agent: moments(sample) for agent, sample in here.items()}
        for a, b in pairs:
            if a in known and b in known:
                draws[a, b].append(welch_of_moments(known[a], known[b]).p)
    return {pair: _agents(context, place, rule, quantity, pair, values, draws[pair]) for pair in pairs}


def _agents(
    context: PlannedStudy,
    place: Place,
    rule: str,
    quantity: Quantity,
    agents: tuple[str, str],
    values: dict[str, AgentSample],
    p_draws: Sequence[float],
) -> AgentDifferenceRow:
    a, b = values[agents[0]], values[agents[1]]
    row = context.row(
        "agents", place, n=a.moments.n + b.moments.n, rules=(rule,),
        level_sets=BOTH if quantity == "gap" else (quantity,), names=(quantity, *agents),
        unnamed=context.beyond_looks,
    )  # fmt: skip
    known = [p for p in p_draws if not math.isnan(p)]
    return AgentDifferenceRow(
        **row,
        rule=rule,
        quantity=quantity,
        agent=agents[0],
        agent_b=agents[1],
        mean=a.moments.mean,
        sem=a.moments.sem,
        mean_b=b.moments.mean,
        sem_b=b.moments.sem,
        n_runs=(a.moments.n, b.moments.n),
        difference=difference_of_agents(
            a, b, rng=context.rng(row["seed"]), method=context.floor_method, **context.resampling
        ),
        decision=Decision(),
        p_draw_min=min(known, default=NAN),
        p_draw_max=max(known, default=NAN),
    )


def agent_rows(context: PlannedStudy, tier_of: Callable[[Place, str], Tier | None]) -> tuple[AgentRow, ...]:
    """One agent's means and SEMs, as in the paper's per-encoder tables."""
    rows = []
    for place in context.study.places:
        for rule in context.study.rules:
            every = {
                quantity: _by_agent(run_values(context, place, rule, quantity)) for quantity in QUANTITIES
            }
            for agent in context.study.agents:
                values = {quantity: every[quantity].get(agent, np.zeros(0)) for quantity in QUANTITIES}
                n = max(array.size for array in values.values())
                if not n:
                    continue
                means: dict[str, Any] = {
                    q: float(array.mean()) if array.size else NAN for q, array in values.items()
                }
                errors: dict[str, Any] = {f"{q}_sem": sem(array) for q, array in values.items()}
                rows.append(
                    AgentRow(
                        **context.row("agent", place, n=n, rules=(rule,), names=(agent,)),
                        rule=rule,
                        agent=agent,
                        **means,
                        **errors,
                        z_train=_floor_z(context, place, "train", values["train"]),
                        z_test=_floor_z(context, place, "test", values["test"]),
                        tier=tier_of(place, agent),
                    )
                )
    return tuple(rows)


def _floor_z(context: PlannedStudy, place: Place, level_set: str, values: Floats) -> float:
    floor = context.study.floor(place, level_set)
    if floor is None or values.size < 2:
        return NAN
    error = float(np.hypot(sem(values), sem(np.sort(floor.units))))
    return (float(values.mean()) - floor.mean) / error if error else NAN
