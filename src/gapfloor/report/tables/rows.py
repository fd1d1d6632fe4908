"""The rows of each table of a report, in order: places, rows of the analysis, or records of what surrounds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from gapfloor.analysis.rows import Row
from gapfloor.audit.ledger import load_ledger
from gapfloor.escape import escape_tex
from gapfloor.report.cka import CkaRecord, seed_means
from gapfloor.report.findings import (
    MERGED,
    SUITE,
    TEST,
    TRAIN,
    Env,
    GameFindings,
    at_budget,
    steps_of,
    steps_text,
)
from gapfloor.report.source import ReportSource
from gapfloor.settings import shipped
from gapfloor.statistics.conventions import NAN, Estimate
from gapfloor.statistics.normalised import published_scale
from gapfloor.tables.cells import text_cell
from gapfloor.tables.table import RuleLine

#: Tables of places: what a place must have. The other places are named below the table.
_NEEDED: dict[str, Callable[[GameFindings], object]] = {
    "unmask": lambda place: place.comparison(place.findings.primary, TEST),
    "tiers": lambda place: place.screen,
    "sweep": lambda place: place.screen and place.screen.sweep,
    "merged": lambda place: place.screen,
    "merged_argmax": lambda place: place.comparison(MERGED, TEST),
    "gap": lambda place: place.gap(place.findings.primary),
}


def rows_of(kind: str, source: ReportSource, about: Any) -> tuple[list[Any], list[str]]:
    """The rows of a table, with lines between them, and the names of the games that lack what it needs.

    `about` is the budget of the table, or its game.
    """
    if kind not in _NEEDED:
        return list(_ROWS[kind](source, about)), []
    # The merged entropies of all budgets are one table; the main budget comes first, as in the paper.
    is_merged = kind == "merged"
    blocks: list[list[Any]] = []
    without: list[str] = []
    for budget in source.findings.main_first if is_merged else [about]:
        places = source.findings.places(budget)
        blocks.append([place for place in places if _NEEDED[kind](place)])
        lacking = (place.name for place in places if not _NEEDED[kind](place))
        without += [f"{name}{at_budget(budget)}" if is_merged else name for name in lacking]
    return _ruled(blocks), without


def _pooled(source: ReportSource, budget: str) -> list[Any]:
    """The games with a gap at several budgets, at each."""
    places = [source.findings.places_of(env) for env in source.findings.all_envs]
    several = [place for of_game in places if len(of_game) > 1 for place in of_game]
    return [place for place in several if place.gap(source.findings.primary)]


def _floor(source: ReportSource, budget: str) -> list[Any]:
    """Every game on both level sets, a block per budget."""
    findings = source.findings
    return _ruled(
        [
            replace(place, level_set=level_set)
            for place in findings.places(budget)
            for level_set in (TRAIN, TEST)
            if any(place.comparison(rule, level_set) for rule in findings.two_rules)
        ]
        for budget in findings.budgets
    )


def _agents(source: ReportSource, budget: str, *between: RuleLine) -> list[Any]:
    """Every agent of every game, with a line after each game if one is given."""
    rows: list[Any] = []
    for place in source.findings.places(budget):
        rows += [*(replace(place, agent=agent) for agent in place.agents), *between[: len(place.agents)]]
    return rows


def _cobbe(source: ReportSource, budget: str) -> list[Any]:
    """Every game with a normalised score, a block per budget, then the means over games."""
    findings = source.findings
    blocks = [[place for place in findings.places(each) if place.scores] for each in findings.budgets]
    means = [GameFindings(findings, Env(SUITE, ""), each) for each in findings.budgets]
    return _ruled([*blocks, [mean for mean in means if mean.scores]] if any(blocks) else [])


def _gap2x2(source: ReportSource, game: Env) -> list[Any]:
    """One game at each of its budgets under both rules, with the floor's own difference."""
    blocks: list[list[Any]] = []
    for place in source.findings.places_of(game):
        found: list[Any] = [row for rule in source.findings.two_rules if (row := place.gap(rule))]
        train, test = place.floor(TRAIN), place.floor(TEST)
        if found and train and test:
            found.append(
                # A row of the floor, which has no runs.
                SimpleNamespace(
                    budget=place.budget, n=None, train=train.mean, train_sem=train.sem, test=test.mean,
                    test_sem=test.sem, gap=train.mean - test.mean,
                )
            )  # fmt: skip
        blocks.append(found)
    return _ruled(blocks)


def _references(source: ReportSource, budget: str) -> list[Any]:
    """Held-out comparisons with stricter references, then with the published maximum of each game and rule."""
    findings = source.findings
    rows = [
        row
        for row in findings.results.reference_comparisons
        if row.level_set == TEST and (row.agent is None or not findings.plan.pooled)
    ]
    maxima = {}
    for row in rows:
        if scale := published_scale(row.game, row.mode):
            maximum = float(scale[1])
            maxima[findings.env_of(row), row.budget, row.rule] = replace(
                row, reference="R_max", floor=maximum, floor_sem=NAN, delta=Estimate(value=row.mean - maximum),
                decision=replace(row.decision, call="not tested", p_adjusted=NAN),
            )  # fmt: skip
    return [*rows, *maxima.values()]


def _ckacontrol(source: ReportSource, budget: str) -> list[Any]:
    """The means over seeds of every game and agent with controls, at the main budget if it has any."""
    findings = source.findings
    groups: dict[tuple[str, str], list[CkaRecord]] = {}
    for record in records_of_main_budget(source):
        if record.A == record.A:
            groups.setdefault((record.game, record.agent), []).append(record)
    return [seed_means(groups[key]) for key in sorted(groups, key=lambda key: findings.order_of(*key))]


def records_of_main_budget(source: ReportSource) -> list[CkaRecord]:
    """The CKA results of the main budget, or of the first one that has any."""
    budgets = [record.budget for record in source.cka]
    wanted = (
        source.findings.main_budget if source.findings.main_budget in budgets else next(iter(budgets), "")
    )
    return [record for record in source.cka if record.budget == wanted]


def _hyper(source: ReportSource, budget: str) -> list[Any]:
    """Hyperparameters, name and value; a value that differs between budgets names them."""
    layout = shipped("report/templates/tables.toml")["hyper"]
    labels: dict[str, str] = layout["labels"]
    by_budget = {name: source.hyperparameters[name] for name in sorted(source.hyperparameters, key=steps_of)}
    known = {name for values in by_budget.values() for name in values}
    rows = []
    for name in (*labels, *sorted(known - set(labels) - set(layout["left_out"]))):
        shown = {
            each: _value_text(name, values[name]) for each, values in by_budget.items() if name in values
        }
        texts = list(dict.fromkeys(shown.values()))
        if not texts:
            continue
        if len(texts) > 1 and name != "budget_steps":
            texts = [f"{text} ({each})" for each, text in shown.items()]
        label = labels.get(name, name.replace("_", " ").capitalize())
        value = "; ".join(texts)
        # Powers of ten are one formula.
        tex = re.sub(
            r"([\d.]+)\$\\times\$10\\textasciicircum\{\}(-?\d+)", r"$\1\\times10^{\2}$", escape_tex(value)
        )
        rows.append([text_cell(label, raw=name), text_cell(value, tex=tex)])
    return rows


def _value_text(name: str, value: Any) -> str:
    if name == "rewards":
        return str(shipped("report/templates/tables.toml")["hyper"]["rewards"].get(str(value), value))
    if name == "budget_steps" and isinstance(value, int):
        return steps_text(value)
    if name == "learning_rate":
        return f"{_scientific(value)} (no annealing)"
    if isinstance(value, bool):
        return "enabled" if value else "disabled"
    if isinstance(value, float):
        return _scientific(value) if 0 < abs(value) < 1e-3 else f"{value:g}"
    return str(value)


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:e}".split("e")
    return f"{float(mantissa):g}×10^{int(exponent)}"


def _ruled(blocks: Iterable[list[Any]]) -> list[Any]:
    """Blocks of rows with a line between them."""
    rows: list[Any] = []
    for block in blocks:
        rows += [RuleLine("midrule"), *block] if rows and block else block
    return rows


def _of_two_rules(source: ReportSource, rows: Iterable[Row]) -> list[Any]:
    return [row for row in rows if row.rule in source.findings.two_rules]


#: The rows of the other tables. Of the merged rule, rules are compared on held-out levels only.
_ROWS: dict[str, Callable[[ReportSource, Any], Iterable[Any]]] = {
    "pooled": _pooled,
    "floor": _floor,
    "full": _agents,
    "res": lambda source, budget: _agents(source, budget, RuleLine("addlinespace")),
    "cobbe": _cobbe,
    "gap2x2": _gap2x2,
    "references": _references,
    "leaks": lambda source, about: source.leaked,
    "ckacontrol": _ckacontrol,
    "other_method": lambda source, about: (
        [*other.floor_comparisons, *other.gaps] if (other := source.findings.results.other_method) else []
    ),
    "sensitivity": lambda source, about: _of_two_rules(source, source.findings.results.sensitivity),
    "multiverse": lambda source, about: (
        row for row in _of_two_rules(source, source.findings.results.sensitivity) if row.n_choices
    ),
    "agent_differences": lambda source, about: _of_two_rules(source, source.findings.results.encoders),
    "rule_differences": lambda source, about: (
        row for row in source.findings.results.pairs if row.rule != MERGED or row.quantity == TEST
    ),
    "audit": lambda source, about: sorted(load_ledger(), key=lambda entry: entry.audit_row),
    "commits": lambda source, about: load_ledger(),
    "hyper": _hyper,
}
