"""All tables of a report, in the paper's order, each followed by the one beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.leaked import LeakedGap
from gapfloor.report.cka_input import CkaRecord
from gapfloor.report.findings import MERGED, Findings
from gapfloor.report.table import Missing, Table
from gapfloor.report.tables import agents, entropy, floor, gap, robust, setting
from gapfloor.report.tables.leaks import leaks
from gapfloor.report.tables.references import references
from gapfloor.report.tables.wording import slug


@dataclass(frozen=True)
class Tables:
    """What could be made, and what could not."""

    tables: tuple[Table, ...]
    missing: tuple[Missing, ...]

    def get(self, name: str) -> Table | None:
        """A table by name."""
        return next((table for table in self.tables if table.name == name), None)


def build_tables(
    findings: Findings,
    *,
    cka: tuple[CkaRecord, ...] = (),
    hyperparameters: Mapping[str, Mapping[str, Any]] | None = None,
    hyperparameters_note: str = "",
    leaked: Sequence[LeakedGap] = (),
) -> Tables:
    """The paper's sixteen tables for these data: one of unmask, tiers, sweep, gap, full and res a budget.

    A table of the main budget bears the paper's plain name; unmask, tiers, sweep and merged_argmax of other budgets
    carry the budget behind it, and gap, full and res carry it always (gap8m, full8m, res25m).
    """
    budgets = sorted(findings.budgets, key=lambda budget: budget != findings.main_budget)
    made: list[Table | Missing | None] = [setting.audit()]
    for budget in budgets:
        made += [floor.unmask(findings, budget), robust.beside_unmask(findings, budget)]
    made += [entropy.tiers(findings, budget) for budget in budgets]
    for budget in budgets:
        made += [
            agents.results_at(findings, budget),
            robust.beside_agents(findings, budget, name=f"res{slug(budget)}"),
        ]
    made += [gap.pooled(findings), robust.beside_pooled(findings)]
    for budget in budgets:
        made += [gap.gap_at(findings, budget), robust.beside_gap(findings, budget)]
    made += [floor.floor(findings), robust.beside_floor(findings), references(findings)]
    made.append(leaks(findings, leaked))
    made += [entropy.sweep(findings, budget) for budget in budgets]
    made.append(entropy.merged(findings))
    for budget in budgets:
        # At another budget than the main one the merged rule is an extra that most studies do not play.
        if budget == findings.main_budget or any(
            row.rule == MERGED and row.budget == budget for row in findings.results.floor_comparisons
        ):
            made += [
                floor.merged_argmax(findings, budget),
                robust.beside_merged_argmax(findings, budget),
            ]
    made += [setting.cobbe(findings), robust.beside_cobbe(findings), setting.commits()]
    made.append(setting.hyper(hyperparameters or {}, note=hyperparameters_note))
    made += [agents.full(findings, budget) for budget in budgets]
    made += _two_by_two(findings)
    made.append(setting.ckacontrol(findings, cka))
    return Tables(
        tuple(table for table in made if isinstance(table, Table)),
        tuple(table for table in made if isinstance(table, Missing)),
    )


def _two_by_two(findings: Findings) -> list[Table | Missing]:
    hardest = findings.hardest_env()
    if hardest is None:
        return [
            Missing(
                "gap2x2", "Both rules, both level sets", "no game with a floor and runs on both level sets"
            )
        ]
    made: list[Table | Missing] = [gap.gap2x2(findings, hardest, name="gap2x2")]
    for env in findings.all_envs:
        if env != hardest and len(findings.budgets_of(env)) > 1:
            table = gap.gap2x2(findings, env, name=f"gap2x2_{slug(findings.name(env))}")
            made += [table] if isinstance(table, Table) else []
    return made
