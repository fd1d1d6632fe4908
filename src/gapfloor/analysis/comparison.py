"""Two agents on the same schedule: the rows of the analysis, and the same question paired by level.

A row is the analysis's own difference between two agents (new runs on these levels), with its decision. It also holds
the difference for new runs on new levels, in which the effect of a level on both agents cancels, and for single
checkpoints the difference of these runs on new levels.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.columns import COMPARED, LABELS, SETTLING
from gapfloor.analysis.compared_agents import check_schedules
from gapfloor.analysis.difference_rows import agent_difference_rows
from gapfloor.analysis.grouping import Place, RunName, RunSample, StudyEpisodes
from gapfloor.analysis.planned_study import PlannedStudy, holm_within
from gapfloor.analysis.rows import AgentDifferenceRow, Estimate
from gapfloor.errors import UsageError
from gapfloor.plan.model import Plan
from gapfloor.statistics.conventions import GENERATOR, NAN
from gapfloor.statistics.crossed import crossed_difference, runs_to_settle
from gapfloor.statistics.power import POWER, minimum_detectable_effect
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table

#: Of episodes that do not say their levels.
_UNPAIRED = Estimate(value=NAN, estimand=GENERATOR, method="paired by level")


@dataclass(frozen=True, kw_only=True)
class AgentComparisonRow(AgentDifferenceRow):
    """One game, rule and quantity of two agents on the same schedule, also paired by level."""

    new_runs: Estimate
    """The difference for new runs on new levels, paired by level; NaN unless both agents have two runs."""
    new_runs_p_adjusted: float = NAN
    """Its p after Holm's correction over the family of the row."""
    these_runs: Estimate
    """The difference of exactly these runs on new levels, paired by level."""
    these_runs_p_adjusted: float = NAN
    """Its p after Holm's correction over the family of the row."""
    n_levels: int
    """Levels that both agents played; 0 without level seeds."""
    floor: float
    """The floor's return (its own gap for quantity gap); NaN without one."""
    minimum_detectable: float
    """The smallest difference that these runs find with 80% power at Holm's hardest step."""
    assumed_difference: float
    """The difference for which `runs_needed` is: the one asked for, or the observed one."""
    runs_needed: int | None
    """Runs of each agent that find it on these levels with 80% power; None: out of reach or unknown."""


@dataclass(frozen=True, repr=False)
class Comparison(ReadableResult):
    """Two agents compared on the same schedule."""

    row_names = ("rows",)

    agent_a: str
    """The first agent; differences are first minus second."""
    agent_b: str
    """The second agent."""
    rows: tuple[AgentComparisonRow, ...]
    """One row per game, budget, rule and quantity."""
    alpha: float
    """Level of the tests."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    def row(self, game: str, rule: str, quantity: str, *, budget: str | None = None) -> AgentComparisonRow:
        """The row of a game, rule and quantity."""
        for row in self.rows:
            if (row.game, row.rule, row.quantity) == (game, rule, quantity) and budget in (None, row.budget):
                return row
        raise UsageError(f"There is no row for {game}, {rule}, {quantity}.")

    def tables(self) -> list[Table]:
        """The differences, over runs and paired by level, and how many runs would settle each."""
        labels = [LABELS[name] for name in ("game", "budget", "rule", "quantity")]
        agents = {"mean_a": self.agent_a, "mean_b": self.agent_b}
        compared = [
            dataclasses.replace(column, title=agents.get(key, column.title))
            for key, column in COMPARED.items()
        ]
        return [
            Table(name="compared", columns=(*labels, *compared), rows=self.rows),
            Table(name="settling", columns=(*labels, *SETTLING.values()), rows=self.rows),
        ]

    def sentences(self) -> list[str]:
        """What the columns mean, and what they are about."""
        lines = [
            f"difference: {self.agent_a} - {self.agent_b}. p: Welch over runs, for new runs on these levels. by level: "
            "paired by level, for new runs on new levels. these runs: paired by level, for exactly these runs on "
            "new levels. Holm: over the games of a rule, quantity and budget.",
            f"Needed numbers are for {POWER:.0%} power at Holm's hardest step and assume that the true difference is "
            "the one shown: where the observed one is noise they are noise too; name one that matters with --detect.",
        ]
        if any(min(row.n_runs) < 2 for row in self.rows):
            lines.append(
                "An agent with one run has no run-to-run variance: those rows are about these runs only, and their p "
                "is in the column 'these runs'."
            )
        return lines


def analyse_comparison(study: StudyEpisodes, *, plan: Plan, detect: float | None = None) -> Comparison:
    """The comparison of a study that holds exactly two agents; runs on different schedules are refused.

    `detect` is the difference for which the needed runs are computed; None: the observed ones.
    """
    notes: tuple[str, ...] = ()
    if not check_schedules(study):
        notes = ("The episodes do not say their levels: nothing could be paired by level.",)
    differences = agent_difference_rows(PlannedStudy(study, plan))
    alpha = plan.floor.alpha

    def family(row: AgentDifferenceRow) -> tuple[str, str]:
        return row.mode, row.decision.family

    sizes = Counter(map(family, differences))
    rows = [_row(study, row, detect, alpha=alpha, family_size=sizes[family(row)]) for row in differences]
    new_runs = holm_within(rows, family, lambda row: row.new_runs.p)
    these_runs = holm_within(rows, family, lambda row: row.these_runs.p)
    rows = [
        dataclasses.replace(row, new_runs_p_adjusted=p, these_runs_p_adjusted=q)
        for row, p, q in zip(rows, new_runs, these_runs, strict=True)
    ]
    return Comparison(study.agents[0], study.agents[1], tuple(rows), alpha, notes)


def _row(
    study: StudyEpisodes, row: AgentDifferenceRow, detect: float | None, *, alpha: float, family_size: int
) -> AgentComparisonRow:
    place = Place(row.game, row.mode, row.budget)
    level_sets = ("train", "test") if row.quantity == "gap" else (row.quantity,)
    runs = [study.runs(place, row.rule, name) for name in level_sets]
    # A run that was measured on one half only has no gap.
    shared = set(runs[0]).intersection(*runs)
    crossed = crossed_difference(
        [
            (sign, *_both({run: half[run] for run in shared}, study.agents))
            for half, sign in zip(runs, (1.0, -1.0), strict=False)
        ]
    )
    floors = [study.floor(place, name) for name in level_sets]
    means = [found.mean for found in floors if found is not None]
    floor = NAN
    if len(means) == len(floors):
        floor = means[0] - means[1] if len(means) == 2 else means[0]
    found, (n_a, n_b) = row.difference, row.n_runs
    assumed = found.value if detect is None else math.copysign(detect, found.value)
    sds = row.sem * math.sqrt(n_a), row.sem_b * math.sqrt(n_b)
    sized: dict[str, Any] = {"family_size": family_size, "alpha": alpha}
    return AgentComparisonRow(
        **{each.name: getattr(row, each.name) for each in dataclasses.fields(row)},
        new_runs=crossed.new_runs if crossed else _UNPAIRED,
        these_runs=crossed.these_runs if crossed else _UNPAIRED,
        n_levels=crossed.n_levels if crossed else 0,
        floor=floor,
        minimum_detectable=minimum_detectable_effect(se=found.se, df=found.df, **sized)
        if math.isfinite(found.se)
        else NAN,
        assumed_difference=assumed,
        runs_needed=runs_to_settle(*sds, assumed, **sized),
    )


def _both(runs: dict[RunName, RunSample], agents: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    """Each agent's runs in the order of their seeds, which is the same on every level set."""
    first, second = (
        [(runs[run].returns, runs[run].levels) for run in sorted(runs) if run.agent == agent]
        for agent in agents
    )
    return first, second
