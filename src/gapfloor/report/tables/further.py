"""Tables beyond the paper's: the other method, other estimators, differences between agents, merged and profiles.

Each is a list of columns over rows of the analysis. A column that nothing fills is left out, and a table without a
number is not made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.rows import ComparisonRow, GapRow, Row
from gapfloor.report.findings import FLOOR, MERGED, Env, Findings, agent_name
from gapfloor.report.tables.wording import sentence, status_of
from gapfloor.tables.cells import (
    Cell,
    call_cell,
    estimate,
    fixed,
    interval,
    is_number,
    p_value,
    percent,
    text_cell,
)
from gapfloor.tables.table import Column, Table, Text


@dataclass(frozen=True)
class _Column:
    """A column, and what its cell is for a row."""

    column: Column
    cell: Callable[[Any], Cell]


def _words(header: str, csv: str, text_of: Callable[[Any], str]) -> _Column:
    return _Column(Column(Text(header), "l", (csv,)), lambda row: text_cell(text_of(row)))


def _number(header: str, csv: str, cell: Callable[[Any], Cell], *, tex: str | None = None) -> _Column:
    """A column of numbers; `csv` names one CSV column per number, separated by spaces."""
    return _Column(Column(Text(header, tex), "r", tuple(csv.split())), cell)


def _p(header: str, csv: str, p_of: Callable[[Any], float]) -> _Column:
    """A column of p values; the p at the end of its header is set in italics."""
    return _number(header, csv, lambda row: p_value(p_of(row)), tex=header.removesuffix("p") + "$p$")


_BUDGET = _words("Budget", "budget", lambda row: row.budget)
_RULE = _words("Rule", "rule", lambda row: "floor" if row.rule == FLOOR else row.rule)
_QUANTITY = _words("Quantity", "quantity", lambda row: row.quantity)
_DIFFERENCE = _number(
    "Difference [interval]",
    "difference low high",
    lambda row: estimate(row.difference.value, row.difference.interval),
)

#: The other method: comparisons with the floor (train, test) and gaps in one table.
_OTHER = (
    _BUDGET,
    _RULE,
    _words("Quantity", "quantity", lambda row: row.level_set if isinstance(row, ComparisonRow) else "gap"),
    _number("n", "n", lambda row: Cell(str(row.n), str(row.n), (row.n,)), tex="$n$"),
    _number(
        "Difference [interval]",
        "difference low high",
        lambda row: estimate(_tested(row).value, _tested(row).interval),
    ),
    _p("Holm p", "holm_p", lambda row: row.decision.p_adjusted),
    _Column(Column(Text("Call"), "l", ("call",)), lambda row: call_cell(row.call)),
)
_SENSITIVITY = (
    _BUDGET,
    _RULE,
    _QUANTITY,
    _number("t interval", "t_low t_high", lambda row: interval((row.t_low, row.t_high)), tex="$t$ interval"),
    _p("Sign flip p", "sign_flip_p", lambda row: row.p_sign_flip),
    _p("smallest p", "sign_flip_smallest_p", lambda row: row.p_sign_flip_smallest),
    _number(
        "New levels [interval]",
        "generator generator_low generator_high",
        lambda row: estimate(row.generator.value, row.generator.interval),
    ),
    _p("p", "generator_p", lambda row: row.generator.p),
    _number("Level share", "level_variance_share", lambda row: percent(row.level_variance_share)),
    _Column(
        Column(Text("Agents as strata"), "l", ("stratified_call",)),
        lambda row: call_cell(row.stratified_call),
    ),
    _number("Floor SEM (levels)", "floor_sem_clustered", lambda row: fixed(row.floor_sem_clustered)),
    _number("80% power", "minimum_detectable", lambda row: fixed(row.minimum_detectable)),
    _number("New run", "new_run_low new_run_high", lambda row: interval((row.new_run_low, row.new_run_high))),
)
_AGENTS = (
    _BUDGET,
    _RULE,
    _QUANTITY,
    _words("Difference of", "pair", lambda row: f"{agent_name(row.agent)} − {agent_name(row.agent_b)}"),
    _DIFFERENCE,
    _p("Welch p", "p", lambda row: row.difference.p),
    _p("Holm p", "holm_p", lambda row: row.decision.p_adjusted),
    _number("one draw: min", "p_draw_min", lambda row: p_value(row.p_draw_min)),
    _number("max", "p_draw_max", lambda row: p_value(row.p_draw_max)),
)
_RULES = (
    _BUDGET,
    _words("Difference of", "pair", lambda row: f"{row.rule} − {row.rule_b}"),
    _QUANTITY,
    _DIFFERENCE,
    _p("Paired p", "p", lambda row: row.difference.p),
    _p("Holm p", "holm_p", lambda row: row.p_adjusted),
    _p("Sign flip p", "sign_flip_p", lambda row: row.p_sign_flip),
)
_PROFILES = (
    _BUDGET,
    _RULE,
    _words("Levels", "levels", lambda row: row.level_set),
    _number(
        "IQM [95% CI]",
        "iqm iqm_low iqm_high",
        lambda row: estimate(row.profile.iqm, row.profile.iqm_ci, sign=False),
    ),
    _number("P(> floor)", "p_improvement", lambda row: fixed(row.p_improvement), tex=r"$P(>\text{floor})$"),
)
_BY_OTHER = {"paper": "the paper's tests", "recommended": "the recommended tests"}


def further_tables(findings: Findings) -> list[Table]:
    """Every further table that the data allow."""
    results = findings.results
    interval_words = {"paper": "95% bootstrap interval", "recommended": "Student's 95% interval"}[
        findings.plan.floor_method
    ]
    rules = (findings.primary, findings.secondary)
    made = [
        _other_method(findings),
        _table(
            findings,
            "sensitivity",
            "Other estimators and assumptions",
            "The comparisons with the floor and the gaps by other estimators: Student's interval over runs, the exact "
            "sign-flip p (and the smallest it can reach at this number of runs), the difference with runs and levels "
            "crossed (for new levels of the generator), the share of episode variance between levels, the call with "
            "agents as strata, the floor's SEM clustered by level, the smallest difference found with 80% power at "
            "the hardest Holm step, and where the gap of a new run is expected.",
            _SENSITIVITY,
            (row for row in results.sensitivity if row.rule in rules),
        ),
        _table(
            findings,
            "agent_differences",
            "Differences between agents",
            f"Differences between agents with their {interval_words}, Welch over runs, Holm over games and pairs of "
            "agents; and the smallest and largest p when the draws are taken one at a time. Estimand: these levels.",
            _AGENTS,
            (row for row in results.encoders if row.rule in rules),
        ),
        _table(
            findings,
            "rule_differences",
            "Differences between rules",
            f"Differences between rules of the same runs with their {interval_words}, paired over runs, Holm over "
            "games, and the exact sign-flip p. Estimand: these levels.",
            _RULES,
            (row for row in results.pairs if row.rule != MERGED or row.quantity == "test"),
        ),
        _table(
            findings,
            "profiles",
            "Normalised scores over the suite",
            "Interquartile mean of run scores over all games, with an interval that resamples runs within games, and "
            "the mean over games of the probability that an episode beats a floor episode (ties count half).",
            _PROFILES,
            results.profiles,
        ),
    ]
    return [table for table in made if table is not None]


def _other_method(findings: Findings) -> Table | None:
    other = findings.results.other_method
    if other is None:
        return None
    names = list(dict.fromkeys((other.floor_method, other.gap_method)))
    by = " and ".join(_BY_OTHER[name] for name in names)
    return _table(
        findings,
        "other_method",
        f"The same comparisons by {by}",
        f"What {by} say of the same comparisons with the floor (quantities train and test) and gaps. No call, number, "
        "figure or sentence elsewhere in this report comes from this table.",
        _OTHER,
        (*other.floor_comparisons, *other.gaps),
    )


def _tested(row: ComparisonRow | GapRow) -> Any:
    return row.delta if isinstance(row, ComparisonRow) else row.estimate


def _table(
    findings: Findings,
    name: str,
    title: str,
    caption: str,
    columns: tuple[_Column, ...],
    rows: Iterable[Row],
) -> Table | None:
    found = list(rows)
    env = _words(
        "Env",
        "env",
        lambda row: findings.name(Env(row.game, row.mode)) if row.game != "mean" else "all games",
    )
    wanted = (env, *columns)
    cells = [tuple(column.cell(row) for column in wanted) for row in found]
    kept = [
        at
        for at, one in enumerate(wanted)
        if one.column.align == "l" or any(is_number(_first(row[at])) for row in cells)
    ]
    if not cells or not any(wanted[at].column.align == "r" for at in kept):
        return None
    dropped = [one.column.header.plain for at, one in enumerate(wanted) if at not in kept]
    return Table(
        name=name,
        title=title,
        caption=sentence(caption.replace("{", "(").replace("}", ")")),
        columns=tuple(wanted[at].column for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in cells),
        notes=(f"Left out because the data do not allow it: {', '.join(dropped)}.",) if dropped else (),
        size="scriptsize",
        separation="2.5pt",
        is_wide=True,
        status=status_of(found),
    )


def _first(cell: Cell) -> float | None:
    value = cell.raw[0]
    return float(value) if isinstance(value, int | float) else None
