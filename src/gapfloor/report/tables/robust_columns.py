"""The columns of the robust tables: what each is called, which CSV columns it becomes, and its cell for a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gapfloor.report.findings import FLOOR, agent_name
from gapfloor.report.formats import (
    Cell,
    call_cell,
    estimate,
    fixed,
    interval,
    p_value,
    percent,
    text_cell,
)
from gapfloor.report.table import Column, Text


@dataclass(frozen=True)
class NamedRow:
    """A row of the analysis with the name of its game."""

    name: str
    row: Any


@dataclass(frozen=True)
class RobustColumn:
    """A column, and what its cell is for a row."""

    column: Column
    cell: Callable[[NamedRow], Cell]


def _words(header: str, csv: str, text_of: Callable[[NamedRow], str]) -> RobustColumn:
    return RobustColumn(Column(Text(header), "l", (csv,)), lambda named: text_cell(text_of(named)))


def _number(header: str, csv: str, cell: Callable[[Any], Cell], *, tex: str | None = None) -> RobustColumn:
    """A column of numbers; `csv` names one CSV column per number, separated by spaces."""
    return RobustColumn(Column(Text(header, tex), "r", tuple(csv.split())), lambda named: cell(named.row))


def _p(header: str, csv: str, p_of: Callable[[Any], float]) -> RobustColumn:
    """A column of p values; the p at the end of its header is set in italics."""
    return _number(header, csv, lambda row: p_value(p_of(row)), tex=header.removesuffix("p") + "$p$")


_ENV = _words("Env", "env", lambda named: named.name)
_BUDGET = _words("Budget", "budget", lambda named: named.row.budget)
_RULE = _words("Rule", "rule", lambda named: "floor" if named.row.rule == FLOOR else named.row.rule)
_LEVELS = _words("Levels", "levels", lambda named: named.row.level_set)
_T_INTERVAL = _number(
    "t interval", "t_low t_high", lambda row: interval(row.test.t_interval), tex="$t$ interval"
)
_SIGN_FLIP = _p("Sign flip p", "sign_flip_p", lambda row: row.robust.sign_flip.p)
_SMALLEST = _number("smallest", "sign_flip_smallest_p", lambda row: p_value(row.robust.sign_flip.smallest))

UNMASK = (
    _ENV,
    _RULE,
    _number(
        "Δ [t interval]",
        "delta t_low t_high",
        lambda row: estimate(row.test.delta, row.test.t_interval),
        tex=r"$\Delta$ [$t$ interval]",
    ),
    _SIGN_FLIP,
    _SMALLEST,
    _number(
        "Strata p (Holm)",
        "stratified_holm_p",
        lambda row: p_value(getattr(row.robust.strata, "p_holm", float("nan"))),
        tex="Strata $p$ (Holm)",
    ),
    RobustColumn(
        Column(Text("Strata call"), "l", ("stratified_call",)),
        lambda named: call_cell(getattr(named.row.robust.strata, "call", None)),
    ),
    _number("Floor SEM (levels)", "floor_sem_clustered", lambda row: fixed(row.robust.floor_sem_clustered)),
    _number("80% power", "minimum_detectable", lambda row: fixed(row.robust.minimum_detectable)),
    _words(
        "Equiv. in reach",
        "equivalence_reachable",
        lambda named: "no" if named.row.robust.equivalence_unreachable else "yes",
    ),
)
FLOOR_TABLE = (
    _ENV,
    _LEVELS,
    _RULE,
    _number(
        "Crossed interval of Δ",
        "crossed_low crossed_high",
        lambda row: interval(row.robust.crossed.interval),
        tex=r"Crossed interval of $\Delta$",
    ),
    _p("Crossed p", "crossed_p", lambda row: row.robust.crossed.p),
    _number("Level share", "level_variance_share", lambda row: percent(row.robust.level_variance_share)),
    _number(
        "Level-paired Δ",
        "level_paired_delta",
        lambda row: fixed(row.robust.level_paired.estimate, sign=True),
        tex=r"Level-paired $\Delta$",
    ),
    _p("p", "level_paired_p", lambda row: row.robust.level_paired.p),
    _number(
        "IQM [95% CI]",
        "iqm iqm_low iqm_high",
        lambda row: estimate(row.robust.iqm.value, row.robust.iqm.ci, sign=False),
    ),
    _number(
        "P(> floor) [95% CI]",
        "p_improvement p_improvement_low p_improvement_high",
        lambda row: estimate(row.robust.improvement.value, row.robust.improvement.ci, sign=False),
        tex=r"$P(>\text{floor})$ [95\% CI]",
    ),
)
_GAP_NUMBERS = (
    _number(
        "Gap [t interval]",
        "gap t_low t_high",
        lambda row: estimate(row.gap.mean, row.gap.t_interval),
        tex="Gap [$t$ interval]",
    ),
    _number("t p", "t_p", lambda row: p_value(row.gap.p_t), tex="$t$ $p$"),
    _SIGN_FLIP,
    _number(
        "Crossed interval", "crossed_low crossed_high", lambda row: interval(row.robust.crossed.interval)
    ),
    _p("p", "crossed_p", lambda row: row.robust.crossed.p),
    _number("Floor gap", "floor_gap", lambda row: fixed(row.floor_gap, sign=True)),
    _number(
        "New run",
        "prediction_low prediction_high",
        lambda row: interval(row.robust.random_effects.prediction),
    ),
)
GAP = (_ENV, _RULE, *_GAP_NUMBERS)
POOLED = (_ENV, _BUDGET, _RULE, *_GAP_NUMBERS)
MERGED_ARGMAX = (
    _ENV,
    _number(
        "Merged−greedy [95% CI]",
        "difference low high",
        lambda row: estimate(row.test.difference, row.test.ci),
        tex=r"Merged$-$greedy [95\% CI]",
    ),
    _T_INTERVAL,
    _p("Paired p", "p", lambda row: row.test.p),
    _p("Holm p", "holm_p", lambda row: row.robust.p_holm),
    _SIGN_FLIP,
    _SMALLEST,
)
AGENTS = (
    _ENV,
    _RULE,
    _words("Quantity", "quantity", lambda named: named.row.quantity),
    _words(
        "Difference of",
        "pair",
        lambda named: f"{agent_name(named.row.agent_a)} − {agent_name(named.row.agent_b)}",
    ),
    _number(
        "Estimate [95% CI]", "difference low high", lambda row: estimate(row.test.difference, row.test.ci)
    ),
    _T_INTERVAL,
    _p("Welch p", "p", lambda row: row.test.p),
    _number("one draw: min", "p_draw_min", lambda row: p_value(row.p_draw_min)),
    _number("max", "p_draw_max", lambda row: p_value(row.p_draw_max)),
)
COBBE = (
    _BUDGET,
    _RULE,
    _LEVELS,
    _number(
        "IQM [95% CI]",
        "iqm iqm_low iqm_high",
        lambda row: estimate(row.profile.iqm, row.profile.iqm_ci, sign=False),
    ),
    _number("P(> floor)", "p_improvement", lambda row: fixed(row.p_improvement), tex=r"$P(>\text{floor})$"),
)
