"""The columns of the rows: what each quantity is called, what it means and how it is printed, described once.

Terminal, notebooks, the further tables of a report and the documentation of columns are written from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gapfloor.analysis.rows import ComparisonRow, Decision
from gapfloor.statistics.estimate import Estimate
from gapfloor.tables.cells import (
    Cell,
    call_cell,
    estimate,
    fixed,
    integer,
    interval,
    mean_sem,
    p_value,
    percent,
    text_cell,
)
from gapfloor.tables.column import Column, by_key


def _label(
    key: str, title: str, meaning: str, text: Callable[[Any], str], *, is_wide: bool = False
) -> Column:
    return Column(key, title, meaning, lambda row: text_cell(text(row)), is_wide=is_wide)


def _p(key: str, title: str, meaning: str, p_of: Callable[[Any], float], *, is_wide: bool = False) -> Column:
    """A column of p values; the p at the end of its title is set in italics."""
    tex = title.removesuffix("p") + "$p$" if title.endswith("p") else None
    return Column(key, title, meaning, lambda row: p_value(p_of(row)), align="r", tex=tex, is_wide=is_wide)


def _number(
    key: str, title: str, meaning: str, cell: Callable[[Any], Cell], csv: tuple[str, ...] = (), **more: Any
) -> Column:
    return Column(key, title, meaning, cell, align="r", csv=csv, **more)


def _difference(key: str, title: str, meaning: str, of: Callable[[Any], Estimate], **more: Any) -> Column:
    """An estimate with its interval."""
    names = (key, f"{key}_low", f"{key}_high")

    def cell(row: Any) -> Cell:
        found = of(row)
        return estimate(found.value, found.interval, _decimals(found.value))

    return _number(key, title, meaning, cell, names, **more)


def _decimals(value: float) -> int:
    """Two decimals as in the paper, or three where two would show next to nothing."""
    return 3 if 0 < abs(value) < 0.1 else 2


def decision_text(decision: Decision) -> str:
    """The call with the reason where nothing was tested, or with what speaks against it."""
    return f"{decision.call} (unreliable: {decision.doubt})" if decision.doubt else decision.label


def _comparison_call(row: ComparisonRow) -> str:
    if row.call == "not distinguishable" and not row.equivalence.is_reachable:
        return f"{row.call} (equivalence unreachable)"
    return decision_text(row.decision)


LABELS = by_key(
    (
        _label("game", "game", "The game, or the environment's name.", lambda row: row.game),
        _label("mode", "mode", "Distribution mode: easy, hard, ...", lambda row: row.mode, is_wide=True),
        _label("budget", "budget", "Label of the training budget, e.g. 8M.", lambda row: row.budget),
        _label("agent", "agent", "The agent by name; empty: all agents pooled.", lambda row: row.agent or ""),
        _label("rule", "rule", "How actions were chosen.", lambda row: row.rule),
        _label("level_set", "levels", "`train` or `test` (held-out).", lambda row: row.level_set),
        _label("quantity", "quantity", "train, test or gap.", lambda row: getattr(row, "quantity", "gap")),
        _number("n", "n", "Runs behind the row.", lambda row: integer(row.n), tex="$n$"),
        _label(
            "status", "status", "pre-registered, pre-specified or exploratory.", lambda row: row.status,
            is_wide=True,
        ),
    )
)  # fmt: skip
RETURNS = by_key(
    (
        _label("reference", "reference", "The policy that knows nothing.", lambda row: row.reference),
        _label("levels", "range", "The level set as a range, e.g. 0:200.", lambda row: row.levels),
        _number("mean", "mean", "Mean return.", lambda row: fixed(row.mean, _decimals(row.mean))),
        _number("sem", "SEM", "Its standard error.", lambda row: fixed(row.sem, _decimals(row.mean))),
        _number("n_episodes", "episodes", "Counted episodes.", lambda row: integer(row.n_episodes)),
        _label("engine", "engine", "The engine that played, with its version.", lambda row: row.engine, is_wide=True),
    )
)  # fmt: skip
COMPARISONS = by_key(
    (
        _number(
            "return", "return", "Mean return over runs and its standard error (of one run: over episodes).",
            lambda row: mean_sem(row.mean, row.sem, _decimals(row.mean)), ("mean", "sem"),
        ),
        _label("reference", "reference", "What the runs are compared with.", lambda row: row.reference),
        _number(
            "floor", "floor", "Mean return of the reference and its standard error.",
            lambda row: mean_sem(row.floor, row.floor_sem, _decimals(row.floor)), ("floor", "floor_sem"),
        ),
        _difference("delta", "difference [interval]", "Return minus floor.", lambda row: row.delta),
        _p("p", "p", "Two-sided p, before correction.", lambda row: row.delta.p, is_wide=True),
        _p("p_adjusted", "Holm p", "p after Holm's correction.", lambda row: row.decision.p_adjusted, is_wide=True),
        _number("z", "z", "The difference in standard errors.", lambda row: fixed(row.z, 1, sign=True), is_wide=True),
        _number(
            "runs_above", "runs above", "Runs whose value is above the floor's mean.",
            lambda row: integer(row.runs_above), is_wide=True,
        ),
        _p("p_tost", "TOST p", "p of the equivalence test.", lambda row: row.equivalence.p, is_wide=True),
        _label("family", "family", "The tests corrected together.", lambda row: row.decision.family, is_wide=True),
        _label("call", "call", "above, below, equivalent, not distinguishable or not tested.", _comparison_call),
    )
)  # fmt: skip
GAPS = by_key(
    (
        _number(
            "train", "train", "Mean return on training levels and its standard error.",
            lambda row: mean_sem(row.train, row.train_sem, _decimals(row.train)), ("train", "train_sem"),
        ),
        _number(
            "test", "test", "Mean return on held-out levels and its standard error.",
            lambda row: mean_sem(row.test, row.test_sem, _decimals(row.test)), ("test", "test_sem"),
        ),
        _number(
            "gap", "gap", "Mean over runs of train - test and its standard error (of one run: over episodes).",
            lambda row: mean_sem(row.gap, row.gap_sem, _decimals(row.gap)), ("gap", "gap_sem"),
        ),
        _number("floor_gap", "floor gap", "Floor train - floor test.", lambda row: fixed(row.floor_gap, sign=True)),
        _difference(
            "tested", "tested [interval]",
            "What was tested: the gap (paper), or the gap adjusted for the floor's (recommended).",
            lambda row: row.estimate,
        ),
        _p("p", "p", "p before correction.", lambda row: row.estimate.p, is_wide=True),
        _p("p_adjusted", "Holm p", "p after Holm's correction.", lambda row: row.decision.p_adjusted, is_wide=True),
        _label("family", "family", "The tests corrected together.", lambda row: row.decision.family, is_wide=True),
        _label(
            "call", "call", "train higher, test higher, not distinguishable or not tested.",
            lambda row: decision_text(row.decision),
        ),
    )
)  # fmt: skip
SCORES = by_key(
    (
        _number(
            "score", "normalised score", "(mean - floor)/(upper - floor) and its standard error.",
            lambda row: mean_sem(row.score, row.sem, _decimals(row.score)), ("score", "score_sem"),
        ),
        _number("r_min", "0 = floor", "The return that counts as 0.", lambda row: fixed(row.r_min)),
        _label(
            "r_max", "1 = upper reference", "The return that counts as 1, and where it comes from.",
            lambda row: f"{fixed(row.r_max).plain} ({row.upper})",
        ),
    )
)  # fmt: skip
#: The other method: comparisons with the floor and gaps in one table.
TESTED = by_key(
    (
        _label(
            "quantity", "Quantity", "train, test or gap.",
            lambda row: row.level_set if isinstance(row, ComparisonRow) else "gap",
        ),
        _difference(
            "difference", "Difference [interval]", "What was tested, by the method in the title.",
            lambda row: row.delta if isinstance(row, ComparisonRow) else row.estimate,
        ),
        _p("holm_p", "Holm p", "p after Holm's correction over the family.", lambda row: row.decision.p_adjusted),
        Column("call", "Call", "The call by the method in the title.", lambda row: call_cell(row.call)),
    )
)  # fmt: skip
DIFFERENCES = by_key(
    (
        _difference("difference", "Difference [interval]", "First minus second.", lambda row: row.difference),
        _p("p", "p", "p of the difference, uncorrected.", lambda row: row.difference.p),
        _p(
            "holm_p", "Holm p", "p after Holm's correction over the family.",
            lambda row: row.decision.p_adjusted if hasattr(row, "decision") else row.p_adjusted,
        ),
        _p("sign_flip_p", "Sign flip p", "p of the exact sign-flip test over runs.", lambda row: row.p_sign_flip),
        _p("p_draw_min", "one draw: min", "Smallest p, one draw at a time.", lambda row: row.p_draw_min),
        _p("p_draw_max", "max", "Largest p over the draws taken one at a time.", lambda row: row.p_draw_max),
    )
)  # fmt: skip
SENSITIVITY = by_key(
    (
        _number(
            "t", "t interval", "Student's 95% interval over runs.", lambda row: interval((row.t_low, row.t_high)),
            ("t_low", "t_high"), tex="$t$ interval",
        ),
        _p("sign_flip_p", "Sign flip p", "p of the exact sign-flip test over runs.", lambda row: row.p_sign_flip),
        _p(
            "sign_flip_smallest_p", "smallest p", "The smallest p that this n allows.",
            lambda row: row.p_sign_flip_smallest,
        ),
        _difference(
            "generator", "New levels [interval]",
            "The same difference with runs and levels crossed. Estimand: the generator of levels.",
            lambda row: row.generator,
        ),
        _p("generator_p", "p", "Its p: would new runs on new levels show it?", lambda row: row.generator.p),
        _number(
            "level_variance_share", "Level share", "Between-level variance over total episode variance.",
            lambda row: percent(row.level_variance_share),
        ),
        Column(
            "stratified_call", "Agents as strata", "The recommended call if agents are strata instead of one pool.",
            lambda row: call_cell(row.stratified_call),
        ),
        _number(
            "floor_sem_clustered", "Floor SEM (levels)", "The floor's standard error, episodes clustered by level.",
            lambda row: fixed(row.floor_sem_clustered),
        ),
        _number(
            "minimum_detectable", "80% power",
            "Smallest difference found with 80% power at the family's hardest Holm step (alpha / m).",
            lambda row: fixed(row.minimum_detectable),
        ),
        _number(
            "new_run", "New run", "Where the gap of a new run is expected.",
            lambda row: interval((row.new_run_low, row.new_run_high)), ("new_run_low", "new_run_high"),
        ),
    )
)  # fmt: skip
PROFILES = by_key(
    (
        _number(
            "iqm", "IQM [95% CI]", "Interquartile mean of the run scores of all games.",
            lambda row: estimate(row.profile.iqm, row.profile.iqm_ci, sign=False), ("iqm", "iqm_low", "iqm_high"),
        ),
        _number(
            "p_improvement", "P(> floor)", "Probability that an episode beats a floor's, ties counting half.",
            lambda row: fixed(row.p_improvement), tex=r"$P(>\text{floor})$",
        ),
    )
)  # fmt: skip
#: Every registry with the rows that it belongs to, for the documentation of columns.
REGISTRIES = {
    "labels of every row": LABELS,
    "returns and floors": RETURNS,
    "comparisons with a reference": COMPARISONS,
    "gaps": GAPS,
    "normalised scores": SCORES,
    "the other method": TESTED,
    "differences between agents or rules": DIFFERENCES,
    "sensitivity": SENSITIVITY,
    "profiles": PROFILES,
}
