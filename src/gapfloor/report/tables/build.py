"""All tables of a report: the paper's in its order, then the further ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gapfloor.analysis.leaked import LeakedGap
from gapfloor.errors import unknown_name
from gapfloor.report.cka_input import CkaRecord
from gapfloor.report.findings import MERGED, Findings
from gapfloor.report.tables import agents, entropy, floor, gap
from gapfloor.report.tables.cka import ckacontrol
from gapfloor.report.tables.further import further_tables
from gapfloor.report.tables.hyperparameters import hyper
from gapfloor.report.tables.leaks import leaks
from gapfloor.report.tables.ledger import audit, commits
from gapfloor.report.tables.normalised import cobbe
from gapfloor.report.tables.references import references
from gapfloor.tables.table import Missing, Table


@dataclass(frozen=True)
class Tables:
    """What could be made, and what could not."""

    tables: tuple[Table, ...]
    missing: tuple[Missing, ...]

    def get(self, name: str) -> Table | None:
        """A table by name."""
        return next((table for table in self.tables if table.name == name), None)


#: Tables about the world around a study, made only where they are asked for.
EXTRA_TABLES = ("audit", "commits", "hyper")


def build_tables(
    findings: Findings,
    *,
    cka: tuple[CkaRecord, ...] = (),
    hyperparameters: Mapping[str, Mapping[str, Any]] | None = None,
    hyperparameters_note: str = "",
    leaked: Sequence[LeakedGap] = (),
    extra: Sequence[str] = (),
) -> Tables:
    """The paper's tables for these data: one of unmask, tiers, sweep, gap, full and res per budget.

    A table of the main budget has the paper's plain name; unmask, tiers, sweep and merged_argmax of other budgets end
    in the budget, and gap, full and res always do (gap8m, full8m, res25m). `extra` names those of `EXTRA_TABLES` that
    are wanted; they come last.
    """
    for name in extra:
        if name not in EXTRA_TABLES:
            raise unknown_name("table", name, EXTRA_TABLES)
    budgets = sorted(findings.budgets, key=lambda budget: budget != findings.main_budget)
    made: list[Table | Missing | None] = []
    made += [floor.unmask(findings, budget) for budget in budgets]
    made += [entropy.tiers(findings, budget) for budget in budgets]
    made += [agents.results_at(findings, budget) for budget in budgets]
    made.append(gap.pooled(findings))
    made += [gap.gap_at(findings, budget) for budget in budgets]
    made += [floor.floor(findings), references(findings), leaks(findings, leaked)]
    made += [entropy.sweep(findings, budget) for budget in budgets]
    made.append(entropy.merged(findings))
    for budget in budgets:
        # At another budget than the main one the merged rule is an extra that most studies do not play.
        if budget == findings.main_budget or any(
            row.rule == MERGED and row.budget == budget for row in findings.results.floor_comparisons
        ):
            made.append(floor.merged_argmax(findings, budget))
    made.append(cobbe(findings))
    made += [agents.full(findings, budget) for budget in budgets]
    made += _two_by_two(findings)
    made.append(ckacontrol(findings, cka))
    made += further_tables(findings)
    extras: dict[str, Callable[[], Table | Missing]] = {
        "audit": audit,
        "commits": commits,
        "hyper": lambda: hyper(hyperparameters or {}, note=hyperparameters_note),
    }
    made += [build() for name, build in extras.items() if name in extra]
    return Tables(
        _with_unique_names(table for table in made if isinstance(table, Table)),
        tuple(table for table in made if isinstance(table, Missing)),
    )


def _with_unique_names(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Tables that do not overwrite each other's files: a budget called 2x2 would give a second gap2x2."""
    found = list(tables)
    names: dict[str, int] = {}
    for at, table in enumerate(found):
        names[table.name] = names.get(table.name, 0) + 1
        if names[table.name] > 1:
            found[at] = replace(table, name=f"{table.name}-{names[table.name]}")
    return tuple(found)


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
            table = gap.gap2x2(findings, env, name=f"gap2x2_{findings.slug(findings.name(env))}")
            made += [table] if isinstance(table, Table) else []
    return made
