"""Rows about differences: between rules of the same runs, and between agents."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from gapfloor.analysis.gap_rows import halves
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import (
    AgentDifferenceRow,
    AgentRow,
    Decision,
    DifferenceWord,
    Quantity,
    RuleDifferenceRow,
)
from gapfloor.plan.model import split_difference
from gapfloor.statistics.conventions import NAN, Floats, Tier, sem
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.families import holm
from gapfloor.statistics.paired import (
    AgentDifference,
    AgentSample,
    PairedDifference,
    agent_sample,
    difference_of_agents,
    paired_difference,
)
from gapfloor.statistics.signflip import sign_flip_test
from gapfloor.statistics.welch import moments, welch_of_moments

QUANTITIES: tuple[Quantity, ...] = ("train", "test", "gap")
Place = tuple[str, str, str]


def run_values(
    context: PlannedStudy, place: Place, rule: str, quantity: Quantity, *, draw: str | None = None
) -> dict[RunName, float]:
    """One value per run: its return on a level set, or its gap; on all draws, or on one."""

    def mean(sample: RunSample) -> float:
        return sample.mean if draw is None else sample.draw_means[draw]

    def has(sample: RunSample) -> bool:
        return draw is None or draw in sample.draws

    if quantity == "gap":
        both = halves(context, place, rule).items()
        return {name: mean(a) - mean(b) for name, (a, b) in both if has(a) and has(b)}
    runs = context.study.runs(*place, rule, quantity)
    return {name: mean(sample) for name, sample in runs.items() if has(sample)}


def pair_rows(context: PlannedStudy) -> tuple[RuleDifferenceRow, ...]:
    """The plan's and the addenda's differences between rules."""
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
    for place in context.study.places():
        for rules, quantities in wanted:
            for quantity in quantities:
                is_named = (rules, quantity) in named
                row = _pair(context, place, rules, quantity, is_named=is_named)
                if row is not None:
                    rows.append(row)
    return _with_holm(rows)


def _pair(
    context: PlannedStudy, place: Place, rules: tuple[str, str], quantity: Quantity, *, is_named: bool
) -> RuleDifferenceRow | None:
    first = run_values(context, place, rules[0], quantity)
    second = run_values(context, place, rules[1], quantity)
    shared = sorted(set(first) & set(second))
    if not shared:
        return None
    game, mode, budget = place
    level_sets = ("train", "test") if quantity == "gap" else (quantity,)
    row = context.row(
        "pair", game=game, mode=mode, budget=budget, n=len(shared), rules=rules, level_sets=level_sets,
        names=(quantity,),
        unnamed=context.beyond_looks
        if is_named
        else f"the plan does not name the difference {rules[0]} - {rules[1]}",
    )  # fmt: skip
    a, b = np.array([first[run] for run in shared]), np.array([second[run] for run in shared])
    rng = context.rng(row["seed"])
    found = paired_difference(a, b, rng=rng, **context.resampling)
    return RuleDifferenceRow(
        **row,
        rule=rules[0],
        rule_b=rules[1],
        quantity=quantity,
        difference=_estimate(context, found, se=found.sem),
        runs_first_higher=found.runs_a_higher,
        runs_second_higher=found.runs_b_higher,
        p_sign_flip=sign_flip_test(a - b, rng=rng).p,
    )


def _estimate(context: PlannedStudy, found: PairedDifference | AgentDifference, *, se: float) -> Estimate:
    """A difference with the interval of the plan's method: the paper's bootstrap, or the one that agrees with p."""
    method = context.floor_method
    low, high = found.ci if method == "paper" else found.t_interval
    return Estimate(
        value=found.difference, se=se, df=found.df, low=low, high=high, p=found.p, method=method,
        confidence=context.plan.intervals.confidence,
    )  # fmt: skip


def _with_holm(rows: Sequence[RuleDifferenceRow]) -> tuple[RuleDifferenceRow, ...]:
    families: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault((row.mode, row.budget, row.rule, row.rule_b, row.quantity), []).append(i)
    corrected = list(rows)
    for members in families.values():
        for i, p in zip(members, holm([rows[i].difference.p for i in members]), strict=True):
            corrected[i] = dataclasses.replace(rows[i], p_adjusted=float(p))
    return tuple(corrected)


def agent_difference_rows(context: PlannedStudy) -> tuple[AgentDifferenceRow, ...]:
    """Every pair of agents, for every rule and quantity, pooled over draws and one draw at a time."""
    rows = []
    pairs = list(combinations(context.study.agents, 2))
    for place in context.study.places():
        for rule in context.study.rules:
            found = {q: _pairs_of_agents(context, place, rule, q) for q in QUANTITIES}
            for agents in pairs:
                train = found["train"].get(agents)
                for quantity in QUANTITIES:
                    row = found[quantity].get(agents)
                    if row is not None:
                        rows.append(_with_share(row, train) if quantity == "gap" else row)
    return _decide(context, rows)


def _decide(context: PlannedStudy, rows: Sequence[AgentDifferenceRow]) -> tuple[AgentDifferenceRow, ...]:
    """The rows with Holm's correction over the games and pairs of agents of a rule, quantity and budget."""
    families: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault((row.mode, row.budget, row.rule, row.quantity), []).append(i)
    decided = list(rows)
    least = context.plan.least_runs
    for (_, budget, rule, quantity), members in families.items():
        p_values = [rows[i].difference.p if min(rows[i].n_runs) >= least else NAN for i in members]
        name = f"agents: {', '.join(part for part in (rule, quantity, budget) if part)}"
        size = sum(not math.isnan(p) for p in p_values)
        for i, p in zip(members, holm(p_values), strict=True):
            call = _call(float(p), rows[i].difference.value, context.plan.floor.alpha)
            few = f"{rows[i].n_runs[0]} and {rows[i].n_runs[1]} runs" if call == "not tested" else ""
            decision = Decision(call=call, p_adjusted=float(p), family=name, family_size=size, reason=few)
            decided[i] = dataclasses.replace(rows[i], decision=decision)
    return tuple(decided)


def _call(p_adjusted: float, difference: float, alpha: float) -> DifferenceWord:
    if math.isnan(p_adjusted):
        return "not tested"
    if p_adjusted >= alpha:
        return "not distinguishable"
    return "first higher" if difference > 0 else "second higher"


def _by_agent(values: dict[RunName, float]) -> dict[str, Floats]:
    lists: dict[str, list[float]] = {}
    for run, value in values.items():
        lists.setdefault(run.agent, []).append(value)
    return {agent: np.array(found) for agent, found in lists.items()}


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
        known = {agent: moments(np.sort(sample)) for agent, sample in here.items()}
        for a, b in pairs:
            if a in known and b in known:
                draws[a, b].append(welch_of_moments(known[a], known[b]).p)
    return {pair: _agents(context, place, rule, quantity, pair, values, tuple(draws[pair])) for pair in pairs}


def _agents(
    context: PlannedStudy,
    place: Place,
    rule: str,
    quantity: Quantity,
    agents: tuple[str, str],
    values: dict[str, AgentSample],
    p_draws: tuple[float, ...],
) -> AgentDifferenceRow:
    a, b = values[agents[0]], values[agents[1]]
    game, mode, budget = place
    level_sets = ("train", "test") if quantity == "gap" else (quantity,)
    row = context.row(
        "agents", game=game, mode=mode, budget=budget, n=a.moments.n + b.moments.n, rules=(rule,),
        level_sets=level_sets, names=(quantity, *agents), unnamed=context.beyond_looks,
    )  # fmt: skip
    found = difference_of_agents(a, b, rng=context.rng(row["seed"]), **context.resampling)
    known = [p for p in p_draws if not math.isnan(p)]
    return AgentDifferenceRow(
        **row,
        rule=rule,
        quantity=quantity,
        agent=agents[0],
        agent_b=agents[1],
        mean=found.mean_a,
        sem=found.sem_a,
        mean_b=found.mean_b,
        sem_b=found.sem_b,
        n_runs=(found.n_a, found.n_b),
        difference=_estimate(context, found, se=math.hypot(found.sem_a, found.sem_b)),
        decision=Decision(),
        p_draw_min=min(known, default=NAN),
        p_draw_max=max(known, default=NAN),
    )


def _with_share(gap: AgentDifferenceRow, train: AgentDifferenceRow | None) -> AgentDifferenceRow:
    if train is None:
        return gap
    whole = gap.difference.value
    return dataclasses.replace(gap, share_from_training=train.difference.value / whole if whole else NAN)


def agent_rows(context: PlannedStudy, tier_of: Callable[[Place, str], Tier | None]) -> tuple[AgentRow, ...]:
    """One agent's means and SEMs, as in the paper's per-encoder tables."""
    rows = []
    for place in context.study.places():
        for rule in context.study.rules:
            every = {
                quantity: _by_agent(run_values(context, place, rule, quantity)) for quantity in QUANTITIES
            }
            for agent in context.study.agents:
                values = {quantity: every[quantity].get(agent, np.zeros(0)) for quantity in QUANTITIES}
                n = max(array.size for array in values.values())
                if not n:
                    continue
                game, mode, budget = place
                row = context.row(
                    "agent", game=game, mode=mode, budget=budget, n=n, rules=(rule,), names=(agent,)
                )
                rows.append(
                    AgentRow(
                        **row,
                        rule=rule,
                        agent=agent,
                        train=_mean(values["train"]),
                        train_sem=_sem(values["train"]),
                        test=_mean(values["test"]),
                        test_sem=_sem(values["test"]),
                        gap=_mean(values["gap"]),
                        gap_sem=_sem(values["gap"]),
                        z_train=_floor_z(context, place, "train", values["train"]),
                        z_test=_floor_z(context, place, "test", values["test"]),
                        tier=tier_of(place, agent),
                    )
                )
    return tuple(rows)


def _mean(values: Floats) -> float:
    return float(np.sort(values).mean()) if values.size else NAN


def _sem(values: Floats) -> float:
    return sem(np.sort(values)) if values.size else NAN


def _floor_z(context: PlannedStudy, place: Place, level_set: str, values: Floats) -> float:
    floor = context.study.floor(*place, level_set)
    if floor is None or values.size < 2:
        return NAN
    error = float(np.hypot(_sem(values), _sem(floor.units)))
    return (_mean(values) - floor.mean) / error if error else NAN
