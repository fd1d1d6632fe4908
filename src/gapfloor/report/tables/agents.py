"""The per-agent tables: full8m and res25m (one of each a budget)."""

from __future__ import annotations

from gapfloor.analysis.rows import AgentRow, Row
from gapfloor.report.findings import Findings, agent_name, rule_title
from gapfloor.report.tables.wording import at_budget, draws_phrase, runs_phrase, sentence, status_of
from gapfloor.tables.cells import Cell, mean_sem, missing_cell, text_cell, tier_cell
from gapfloor.tables.table import Column, ColumnGroup, Missing, RuleLine, Table, Text


def full(findings: Findings, budget: str) -> Table | Missing:
    """Every agent's train, test and gap under both rules."""
    name = f"full{findings.slug(budget)}"
    title = f"Every agent under both rules{at_budget(budget)}"
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    rows: list[tuple[Cell, ...] | RuleLine] = []
    every: list[Row] = []
    for env in findings.envs(budget):
        for agent in findings.agents(env, budget):
            found = [findings.agent(env, budget, rule, agent) for rule in rules]
            every += [row for row in found if row]
            rows.append(
                (
                    text_cell(findings.name(env)),
                    text_cell(agent_name(agent)),
                    *(cell for row in found for cell in _three(row)),
                )
            )
    if not rows:
        return Missing(name, title, "no agents are named in the data")
    caption = sentence(
        "Returns{budget} of each agent, mean ± SEM over {runs}, each run the mean of {draws}.",
        budget=at_budget(budget),
        runs=runs_phrase(every),
        draws=draws_phrase(findings),
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=(
            Column(Text("Env"), "l", ("env",)),
            Column(Text("Encoder"), "l", ("agent",)),
            *(
                Column(Text(part), "r", (f"{rule}_{part.lower()}", f"{rule}_{part.lower()}_sem"))
                for rule in rules
                for part in ("Train", "Test", "Gap")
            ),
        ),
        rows=tuple(rows),
        groups=tuple(
            ColumnGroup(Text(rule_title(rule)), 2 + 3 * at, 4 + 3 * at) for at, rule in enumerate(rules)
        ),
        size="scriptsize",
        separation="3pt",
        status=status_of(every),
    )


def results_at(findings: Findings, budget: str) -> Table | Missing:
    """Every agent's primary-rule returns, held-out return and gap of the second rule, and tier (res25m)."""
    name = f"res{findings.slug(budget)}"
    title = f"Results of each agent{at_budget(budget)}"
    second = findings.secondary
    rows: list[tuple[Cell, ...] | RuleLine] = []
    every: list[Row] = []
    tiers = False
    for env in findings.envs(budget):
        agents = findings.agents(env, budget)
        for agent in agents:
            first = findings.agent(env, budget, findings.primary, agent)
            other = findings.agent(env, budget, second, agent) if second else None
            every += [row for row in (first, other) if row]
            tiers = tiers or bool(first and first.tier)
            cells = [text_cell(findings.name(env)), text_cell(agent_name(agent)), *_three(first)]
            if second:
                cells += _three(other)[1:]
            cells.append(tier_cell(first.tier if first else None))
            rows.append(tuple(cells))
        if agents:
            rows.append(RuleLine("addlinespace"))
    if not rows:
        return Missing(name, title, "no agents are named in the data")
    counts = {
        findings.name(env): {
            row.n
            for agent in findings.agents(env, budget)
            if (row := findings.agent(env, budget, findings.primary, agent))
        }
        for env in findings.envs(budget)
    }
    runs = ", ".join(f"{game} n = {'/'.join(map(str, sorted(ns)))}" for game, ns in counts.items() if ns)
    columns = [
        Column(Text("Env"), "l", ("env",)),
        Column(Text("Encoder"), "l", ("agent",)),
        *_part_columns(findings.primary, ("Train", "Test", "Gap")),
    ]
    groups = [ColumnGroup(Text(f"{rule_title(findings.primary)} (primary)"), 2, 4)]
    if second:
        columns += _part_columns(second, ("Test", "Gap"))
        groups.append(ColumnGroup(Text(rule_title(second)), 5, 6))
    columns.append(Column(Text("Tier"), "l", ("tier",)))
    caption = sentence(
        "Final checkpoints{budget}, mean ± SEM over runs ({runs} per agent), each run the mean of {draws}. "
        "Tier: raw entropy on the states of {rule} evaluation.",
        budget=at_budget(budget),
        runs=runs,
        draws=draws_phrase(findings),
        rule=findings.primary,
    )
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        groups=tuple(groups),
        notes=() if tiers else ("Tiers need cell records, which these data lack.",),
        status=status_of(every),
    )


def _part_columns(rule: str, parts: tuple[str, ...]) -> list[Column]:
    return [
        Column(Text(part), "r", (f"{rule}_{part.lower()}", f"{rule}_{part.lower()}_sem")) for part in parts
    ]


def _three(row: AgentRow | None) -> list[Cell]:
    if row is None:
        return [missing_cell(2)] * 3
    return [
        mean_sem(row.train, row.train_sem),
        mean_sem(row.test, row.test_sem),
        mean_sem(row.gap, row.gap_sem),
    ]
