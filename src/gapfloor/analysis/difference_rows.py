"""Rows about differences: between rules of the same runs, and between agents."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from gapfloor.analysis.grouping import MOST_AGENTS, Place, RunName, RunSample
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
from gapfloor.statistics.families import holm, word_of
from gapfloor.statistics.paired import difference_of_agents, paired_difference
from gapfloor.statistics.run_shape import difference_doubt, family_shape
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
        if draw is None:
            return sample.mean
        if draw not in sample.draws:
            return NAN
        return float(np.sort(sample.returns[sample.draw == sample.draws.index(draw)]).mean())

    if quantity == "gap":
        both = context.study.halves(place, rule, agent=agent)
        values = {name: mean(train) - mean(test) for name, (train, test) in both.items()}
    else:
        values = {name: mean(s) for name, s in context.study.runs(place, rule, quantity, agent=agent).items()}
    return {name: value for name, value in values.items() if not math.isnan(value)}


def pair_rows(context: PlannedStudy) -> tuple[RuleDifferenceRow, ...]:
    """The plan's and the addenda's differences between rules, of each of the plan's pools."""
    texts = [("the plan", text, context.plan.pairs.quantities) for text in context.plan.pairs.differences]
    for addendum, _ in context.locked.addenda if context.locked else ():
        texts += [(addendum.name, text, addendum.quantities) for text in addendum.pairs]
    # The rules and the quantity of each difference, and why it has no name in the plan, or nothing.
    wanted = {
        (split_difference(text, source=source), quantity): ""
        for source, text, quantities in texts
        for quantity in quantities
    }
    merged = ("merged", "greedy")
    if "merged" in context.study.rules and merged not in {rules for rules, _ in wanted}:
        # A merged rule is always compared with the greedy rule that it repairs.
        reason = f"the plan does not name the difference {' - '.join(merged)}"
        wanted |= {(merged, quantity): reason for quantity in QUANTITIES}
    rows = []
    for agent, place, ((rules, quantity), unnamed) in product(
        context.pools, context.study.places, wanted.items()
    ):
        first, second = (run_values(context, place, rule, quantity, agent=agent) for rule in rules)
        if not (shared := sorted(set(first) & set(second))):
            continue
        row = context.row(
            "pair", place, n=len(shared), rules=rules, level_sets=BOTH if quantity == "gap" else (quantity,),
            agent=agent, names=(quantity, *([agent] if agent is not None else [])), unnamed=unnamed,
        )  # fmt: skip
        a, b = np.array([first[run] for run in shared]), np.array([second[run] for run in shared])
        difference = paired_difference(a, b, method=context.method, **context.resampling(row["seed"]))
        rows.append(
            RuleDifferenceRow(
                **{**row, "level_set": ""},
                rule_b=rules[1],
                quantity=quantity,
                difference=difference,
                runs_first_higher=int(np.count_nonzero(a > b)),
                runs_second_higher=int(np.count_nonzero(b > a)),
            )
        )
    adjusted = holm_within(
        rows,
        lambda row: (row.mode, row.budget, row.agent, row.rule, row.rule_b, row.quantity),
        lambda row: row.difference.p,
    )
    return tuple(dataclasses.replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True))


def agent_difference_rows(context: PlannedStudy) -> tuple[AgentDifferenceRow, ...]:
    """Every pair of agents, for every rule and quantity, pooled over draws and one draw at a time.

    Holm's correction is over the games and pairs of agents of a rule, quantity and budget. There are none between
    more than `MOST_AGENTS`.
    """
    rows: list[AgentDifferenceRow] = []
    if len(context.study.agents) > MOST_AGENTS:
        return ()
    for place, rule in product(context.study.places, context.study.rules):
        found = {quantity: _between_agents(context, place, rule, quantity) for quantity in QUANTITIES}
        for agents in combinations(context.study.agents, 2):
            train, gap = found["train"].get(agents), found["gap"].get(agents)
            if train is not None and gap is not None and gap.difference.value:
                share = train.difference.value / gap.difference.value
                found["gap"][agents] = dataclasses.replace(gap, share_from_training=share)
            rows += [found[quantity][agents] for quantity in QUANTITIES if agents in found[quantity]]

    def family(i: int) -> tuple[str, ...]:
        return rows[i].mode, rows[i].budget, rows[i].rule, rows[i].quantity

    for members in families_of(range(len(rows)), family):
        calls = _decisions(context, [rows[i] for i in members])
        for i, call in zip(members, calls, strict=True):
            rows[i] = dataclasses.replace(rows[i], decision=call)
    return tuple(rows)


def _between_agents(
    context: PlannedStudy, place: Place, rule: str, quantity: Quantity
) -> dict[tuple[str, str], AgentDifferenceRow]:
    """The differences between all agents measured here."""
    study, rows = context.study, {}
    values = _by_agent(run_values(context, place, rule, quantity))
    one_at_a_time = study.draws if context.plan.agents.one_draw_at_a_time and len(values) > 1 else ()
    on_draws = [
        {agent: moments(found) for agent, found in _by_agent(on_draw).items()}
        for draw in one_at_a_time
        if (on_draw := run_values(context, place, rule, quantity, draw=draw))
    ]
    for agents in combinations([agent for agent in study.agents if agent in values], 2):
        a, b = (moments(values[agent]) for agent in agents)
        row = context.row(
            "agents", place, n=a.n + b.n, rules=(rule,), level_sets=BOTH if quantity == "gap" else (quantity,),
            agent=agents[0], names=(quantity, *agents),
        )  # fmt: skip
        p_draws = [
            p
            for known in on_draws
            if known.keys() >= set(agents)
            and not math.isnan(p := welch_of_moments(known[agents[0]], known[agents[1]]).p)
        ]
        difference = difference_of_agents(
            values[agents[0]], values[agents[1]], method=context.method, **context.resampling(row["seed"])
        )
        rows[agents] = AgentDifferenceRow(
            **{**row, "level_set": ""},
            quantity=quantity,
            agent_b=agents[1],
            mean=a.mean,
            sem=a.sem,
            mean_b=b.mean,
            sem_b=b.sem,
            n_runs=(a.n, b.n),
            difference=difference,
            decision=Decision(),
            p_draw_min=min(p_draws, default=NAN),
            p_draw_max=max(p_draws, default=NAN),
        )
    return rows


def _decisions(context: PlannedStudy, family: Sequence[AgentDifferenceRow]) -> list[Decision]:
    """The calls of one family; those that the shape of the runs forbids are not made by the recommended method."""
    first, least, words = family[0], context.plan.least_runs, ("first higher", "second higher")
    adjusted = holm([row.difference.p if min(row.n_runs) >= least else NAN for row in family])
    # The shape of each agent's runs in all games of the family, as for calls against the floor.
    samples: dict[str, list[Floats]] = {}
    if context.method == "recommended":
        for place in dict.fromkeys(Place(row.game, row.mode, row.budget) for row in family):
            values = _by_agent(run_values(context, place, first.rule, first.quantity))
            for agent, found in values.items():
                samples.setdefault(agent, []).append(found)
    shapes = {agent: family_shape(found) for agent, found in samples.items()}
    name = f"agents: {', '.join(part for part in (first.rule, first.quantity, first.budget) if part)}"
    size = int(np.count_nonzero(~np.isnan(adjusted)))
    decisions = []
    for row, p in zip(family, map(float, adjusted), strict=True):
        call = word_of(p, row.difference.value, words, alpha=context.plan.floor.alpha)
        reason = ""
        if call == "not tested":
            few = f"{row.n_runs[0]} and {row.n_runs[1]} runs"
            reason = "the runs do not differ" if min(row.n_runs) >= least else few
        elif call in words and shapes:
            one, other = shapes[str(row.agent)], shapes[row.agent_b]
            reason = difference_doubt(*((one, other) if row.difference.value > 0 else (other, one)))
            call = "not tested" if reason else call
        decisions.append(Decision(call=call, p_adjusted=p, family=name, family_size=size, reason=reason))
    return decisions


def _by_agent(values: dict[RunName, float]) -> dict[str, Floats]:
    lists: dict[str, list[float]] = {}
    for run, value in values.items():
        lists.setdefault(run.agent, []).append(value)
    return {agent: np.sort(found) for agent, found in lists.items()}


def agent_rows(context: PlannedStudy, tier_of: Callable[[Place, str], Tier | None]) -> tuple[AgentRow, ...]:
    """One agent's means and SEMs, as in the paper's per-encoder tables."""
    rows, study = [], context.study

    def z(place: Place, level_set: str, values: Floats) -> float:
        floor = study.floor(place, level_set)
        if floor is None or values.size < 2:
            return NAN
        error = float(np.hypot(sem(values), sem(np.sort(floor.units))))
        return (float(values.mean()) - floor.mean) / error if error else NAN

    for place, rule in product(study.places, study.rules):
        every = {name: _by_agent(run_values(context, place, rule, name)) for name in QUANTITIES}
        for agent in study.agents:
            values = {name: every[name].get(agent, np.zeros(0)) for name in QUANTITIES}
            if not (n := max(array.size for array in values.values())):
                continue
            means: dict[str, Any] = {}
            for name, array in values.items():
                means |= {name: float(array.mean()) if array.size else NAN, f"{name}_sem": sem(array)}
            rows.append(
                AgentRow(
                    **context.row("agent", place, n=n, rules=(rule,), agent=agent, names=(agent,)),
                    **means,
                    z_train=z(place, "train", values["train"]),
                    z_test=z(place, "test", values["test"]),
                    tier=tier_of(place, agent),
                )
            )
    return tuple(rows)
