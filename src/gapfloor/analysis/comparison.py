"""Two agents on the same schedule: the analysis of their runs, and the same question paired by level.

The rows over runs (these levels) are the analysis's own. Each also holds the difference for new runs on new levels, in
which the effect of a level on both agents cancels, and for single checkpoints the difference of these runs on new
levels. Holm's correction covers the games that share a rule, a quantity and a budget.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.analysis.compared_agents import check_schedules
from gapfloor.analysis.difference_results import AgentDifferenceResult
from gapfloor.analysis.difference_rows import agent_difference_rows
from gapfloor.analysis.grouping import RunName, RunSample, StudyEpisodes
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.plan.model import Plan, content_hash
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.crossed import (
    CrossedDifference,
    crossed_difference,
    levels_to_settle,
    runs_to_settle,
)
from gapfloor.statistics.detectable import POWER, minimum_detectable_effect
from gapfloor.statistics.families import holm
from gapfloor.text_tables import ReadableResult, TextTable, number, p_text, signed, with_error

Verdict = Literal["a higher", "b higher", "not distinguishable", "too few runs"]


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One game, rule and quantity (train, test or gap)."""

    over_runs: AgentDifferenceResult
    """Agent a minus agent b, Welch over runs: the analysis's row. Estimand: these levels, new runs."""
    p_holm: float
    """p after Holm's correction over the family."""
    family_size: int
    """How many tests the family has."""
    by_level: CrossedDifference | None
    """Paired by level: new runs on new levels, and these runs on new levels. None without level seeds."""
    by_level_p_holm: float
    """p of new runs on new levels after Holm."""
    levels_p_holm: float
    """Holm over the p of these runs on new levels."""
    floor: float
    """The floor's return (its own gap for quantity gap); NaN without one."""
    verdict: Verdict
    """Over runs, after Holm."""
    minimum_detectable: float
    """The smallest difference that these runs find with 80% power at Holm's hardest step."""
    assumed_difference: float
    """The difference for which the next two are: the one asked for, or the observed one."""
    runs_needed: int | None
    """Runs of each agent that find it on these levels with 80% power; None: out of reach or unknown."""
    levels_needed: int | None
    """Levels on which these runs find it for the generator; None: these runs alone forbid it."""


@dataclass(frozen=True, repr=False)
class Comparison(ReadableResult):
    """Two agents compared on the same schedule."""

    row_names = ("rows",)

    agent_a: str
    """The first agent; differences are first minus second."""
    agent_b: str
    """The second agent."""
    rows: tuple[ComparisonRow, ...]
    """One row per game, budget, rule and quantity."""
    alpha: float
    """Level of the tests."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    def row(self, game: str, rule: str, quantity: str, *, budget: str | None = None) -> ComparisonRow:
        """The row of a game, rule and quantity."""
        for row in self.rows:
            over = row.over_runs
            same = (over.game, over.rule, over.quantity) == (game, rule, quantity)
            if same and budget in (None, over.budget):
                return row
        raise UsageError(f"There is no row for {game}, {rule}, {quantity}.")

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor compare --json` prints."""
        return dict(jsonable(dataclasses.asdict(self)))

    def tables(self) -> list[TextTable]:
        """The differences, and what would settle them."""
        return [self.table(), self.settling_table()]

    def table(self) -> TextTable:
        """The differences: over runs, and paired by level."""
        headings = [
            "game", "budget", "rule", "quantity", self.agent_a, self.agent_b, "difference", "p", "Holm",
            "by level: SE", "p", "Holm", "these runs: p", "Holm", "floor", "over runs",
        ]  # fmt: skip
        rows = []
        for row in self.rows:
            over, crossed = row.over_runs, row.by_level
            rows.append(
                [
                    over.game, over.budget, over.rule, over.quantity,
                    f"{with_error(over.test.mean_a, over.test.sem_a)} ({over.test.n_a})",
                    f"{with_error(over.test.mean_b, over.test.sem_b)} ({over.test.n_b})",
                    signed(over.test.difference), p_text(over.test.p), p_text(row.p_holm),
                    number(crossed.se) if crossed else "-", p_text(crossed.p if crossed else NAN),
                    p_text(row.by_level_p_holm), p_text(crossed.p_levels if crossed else NAN),
                    p_text(row.levels_p_holm), number(row.floor), self._words(row.verdict),
                ]
            )  # fmt: skip
        return headings, rows

    def _words(self, verdict: Verdict) -> str:
        named = {"a higher": f"{self.agent_a} higher", "b higher": f"{self.agent_b} higher"}
        return named.get(verdict, verdict)

    def settling_table(self) -> TextTable:
        """How many runs or levels would settle each difference."""
        headings = [
            "game", "budget", "rule", "quantity", "difference assumed", "detectable now", "runs each needed",
            "levels needed",
        ]  # fmt: skip
        rows = []
        for row in self.rows:
            over = row.over_runs
            n_levels = row.by_level.n_levels if row.by_level else 0
            rows.append(
                [
                    over.game, over.budget, over.rule, over.quantity, signed(row.assumed_difference),
                    number(row.minimum_detectable), _needed(row.runs_needed, over.test.n_a, over.test.n_b),
                    _needed(row.levels_needed, n_levels),
                ]
            )  # fmt: skip
        return headings, rows

    def sentences(self) -> list[str]:
        """What the columns mean, and what they are about."""
        lines = [
            f"difference: {self.agent_a} - {self.agent_b}. p: Welch over runs, for new runs on these levels. by level: "
            "paired by level, for new runs on new levels. these runs: paired by level, for exactly these runs on "
            "new levels. Holm: over the games of a rule, quantity and budget.",
            f"Needed numbers are for {POWER:.0%} power at Holm's hardest step and assume that the true difference is "
            "the one shown: where the observed one is noise they are noise too; name one that matters with --detect.",
        ]
        if any(min(row.over_runs.test.n_a, row.over_runs.test.n_b) < 2 for row in self.rows):
            lines.append(
                "An agent with one run has no run-to-run variance: those rows are about these runs only, and their p "
                "is in the column 'these runs'."
            )
        return lines


def analyse_comparison(
    study: StudyEpisodes, *, plan: Plan, detect: float | None = None, notes: Sequence[str] = ()
) -> Comparison:
    """The comparison of a study that holds exactly two agents; runs on different schedules are refused.

    `detect` is the difference for which the needed runs and levels are computed; None: the observed ones.
    """
    remarks = list(notes)
    if not check_schedules(study):
        remarks.append("The episodes do not say their levels: nothing could be paired by level.")
    differences = agent_difference_rows(PlannedStudy(study, plan, content_hash(plan), None))
    sizes = Counter(_family(over) for over in differences)
    rows = [
        _row(study, over, detect, alpha=plan.floor.alpha, family_size=sizes[_family(over)])
        for over in differences
    ]
    return Comparison(
        study.agents[0], study.agents[1], _correct(rows, plan.floor.alpha), plan.floor.alpha, tuple(remarks)
    )


def _family(over: AgentDifferenceResult) -> tuple[str, ...]:
    """Rows that share one correction: the games of a rule, quantity and budget."""
    return over.mode, over.budget, over.rule, over.quantity


def _row(
    study: StudyEpisodes, over: AgentDifferenceResult, detect: float | None, *, alpha: float, family_size: int
) -> ComparisonRow:
    place = (over.game, over.mode, over.budget)
    level_sets = ("train", "test") if over.quantity == "gap" else (over.quantity,)
    runs = [study.runs(*place, over.rule, name) for name in level_sets]
    # A run that was measured on one half only has no gap.
    shared = set(runs[0]).intersection(*runs)
    crossed = crossed_difference(
        [
            (sign, *_both({run: half[run] for run in shared}, study.agents))
            for half, sign in zip(runs, (1.0, -1.0), strict=False)
        ]
    )
    floors = [study.floor(*place, name) for name in level_sets]
    floor = NAN
    if all(found is not None for found in floors):
        means = [found.mean for found in floors if found is not None]
        floor = means[0] - means[1] if len(means) == 2 else means[0]
    assumed = over.test.difference if detect is None else math.copysign(detect, over.test.difference)
    sds = [over.test.sem_a * math.sqrt(over.test.n_a), over.test.sem_b * math.sqrt(over.test.n_b)]
    se = math.hypot(over.test.sem_a, over.test.sem_b)
    return ComparisonRow(
        over_runs=over,
        p_holm=NAN,
        family_size=family_size,
        by_level=crossed,
        by_level_p_holm=NAN,
        levels_p_holm=NAN,
        floor=floor,
        verdict="too few runs",
        minimum_detectable=minimum_detectable_effect(
            se=se, df=over.test.df, alpha=alpha, family_size=family_size
        )
        if math.isfinite(se)
        else NAN,
        assumed_difference=assumed,
        runs_needed=runs_to_settle(sds[0], sds[1], assumed, family_size=family_size, alpha=alpha),
        levels_needed=levels_to_settle(crossed, assumed, family_size=family_size, alpha=alpha)
        if crossed
        else None,
    )


def _both(runs: dict[RunName, RunSample], agents: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    """Each agent's runs in the order of their seeds, which is the same on every level set."""
    first, second = (
        [(runs[run].returns, runs[run].levels) for run in sorted(runs) if run.agent == agent]
        for agent in agents
    )
    return first, second


def _correct(rows: Sequence[ComparisonRow], alpha: float) -> tuple[ComparisonRow, ...]:
    families: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault(_family(row.over_runs), []).append(i)
    corrected = list(rows)
    for members in families.values():
        over_runs = holm([rows[i].over_runs.test.p for i in members])
        crossed = holm([found.p if (found := rows[i].by_level) else NAN for i in members])
        levels = holm([found.p_levels if (found := rows[i].by_level) else NAN for i in members])
        for i, p, q, r in zip(members, over_runs, crossed, levels, strict=True):
            corrected[i] = dataclasses.replace(
                rows[i],
                p_holm=float(p),
                by_level_p_holm=float(q),
                levels_p_holm=float(r),
                verdict=_verdict(float(p), rows[i].over_runs.test.difference, alpha),
            )
    return tuple(corrected)


def _verdict(p_holm: float, difference: float, alpha: float) -> Verdict:
    if math.isnan(p_holm):
        return "too few runs"
    if p_holm >= alpha:
        return "not distinguishable"
    return "a higher" if difference > 0 else "b higher"


def _needed(needed: int | None, *now: int) -> str:
    if needed is None:
        return "-"
    here = " and ".join(str(n) for n in now)
    return f"enough ({here})" if needed <= min(now) else f"{needed} (now {here})"
