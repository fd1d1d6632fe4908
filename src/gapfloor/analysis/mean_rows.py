"""Comparisons of published means with a floor, per game and agent.

The floor comes from rows of the table, from a number that the user states, or from the floors that ship with gapfloor,
by the environment's name. From moments alone the difference from the floor can be tested. Shapes of run values, levels,
gaps of single runs and rules cannot; the results say so once.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.apply import plan_used
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.compared import call_counts
from gapfloor.analysis.grouping import Place, StudyEpisodes
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.known_floors import StatedFloor, find_known_floor, stated_floors
from gapfloor.analysis.planned_study import BOTH, PlannedStudy, families_of, resolve_plan
from gapfloor.analysis.results import AnalysisResults, Problem, SourceSummary
from gapfloor.analysis.rows import ComparisonRow, Decision, Estimate, ReturnRow
from gapfloor.analysis.summaries import Summaries, Summary
from gapfloor.errors import UsageError
from gapfloor.plan.model import Plan
from gapfloor.statistics.behrens_fisher import VariancePart, two_part_interval, two_part_p
from gapfloor.statistics.conventions import CALLS, NAN, NO_PAIR
from gapfloor.statistics.families import FamilyTest, call_family
from gapfloor.tables.cells import counted

#: Agents that are the floor where the user names none.
_FLOOR_NAMES = ("random", "uniform", "randompolicy", "randomagent", "uniformrandom", "floor")
#: Degrees of freedom of a floor that is stated without its number of episodes.
_MANY = 1000
_CANNOT = (
    "only means were given: levels, gaps of single runs and the shape of run values cannot be tested, and calls assume "
    "that run values are roughly normal"
)


def results_of_means(means: Summaries, plan: Any, options: TableOptions) -> AnalysisResults:
    """The comparison of every agent with the floor of its game, from means.

    Args:
        means: the means of a table.
        plan: the plan, whose alpha and least number of runs are used.
        options: the floor, and the mode of ProcGen's games (the label `mode`; easy by default). Without a floor it is
            rows named random or uniform, and else the floors that ship with gapfloor.
    """
    floor, mode = options.floor, options.constants.get("mode", "easy")
    locked = resolve_plan(plan)
    content = locked.plan if locked is not None else Plan.paper()
    own = [row for row in means.rows if _is_floor(row, floor)]
    runs = [row for row in means.rows if not _is_floor(row, floor)]
    if not runs:
        raise UsageError("The table has no rows besides the floor's.")

    def names(label: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(getattr(row, label) for row in runs))

    sets = names("level_set")
    study = StudyEpisodes(
        policies={}, references={}, games=names("game"), modes=(mode,), budgets=("",), rules=names("rule"),
        level_sets=tuple(dict.fromkeys(name for name in (*BOTH, *sets) if name in sets)), draws=(),
        agents=names("agent"), n_cells=0,
    )  # fmt: skip
    context = PlannedStudy(study, content, locked, pools=study.agents)
    found = {(row.game, row.level_set): _floor_of(row.game, row.level_set, own, floor, mode) for row in runs}
    floors = {key: each for key, each in found.items() if each is not None}
    if not floors:
        raise UsageError(
            "There is no floor to compare with: no rows are named random or uniform, and no floor of "
            f"{', '.join(study.games)} ships with gapfloor. Give the floor's value with --floor 3.1±0.2, or name its "
            "rows (--floor NAME)."
        )
    compared = [
        MeanComparison(row, each, content.least_runs)
        for row in runs
        if (each := floors.get((row.game, row.level_set)))
    ]
    lacking = "no floor: name its rows or its value (--floor NAME, --floor 3.1±0.2), or measure it"
    problems = [Problem(kind="assumed", where="the source", what=text) for text in (*means.notes, _CANNOT)]
    for key in (key for key in found if key not in floors):
        problems.append(Problem(kind="no floor", where=", ".join(key), what=lacking))
    for origin in dict.fromkeys(each.origin for each in floors.values() if each.origin):
        games = dict.fromkeys(game for (game, _), each in floors.items() if each.origin == origin)
        problems.append(Problem(kind="assumed", where=", ".join(games), what=origin))
    compared_rows, primary = tuple(_compared(context, compared)), content.scope.primary_rule
    floor_rows = [
        ReturnRow(
            **{
                **context.row(
                    "floor", Place(game, mode, ""), n=each.n, rules=(FLOOR_RULE,), level_sets=(level_set,)
                ),
                "rule": "",
            },
            reference=FLOOR_RULE, mean=each.mean, sem=each.sem, n_episodes=each.n, n_draws=0, n_levels=0,
        )
        for (game, level_set), each in floors.items()
    ]  # fmt: skip
    # Rows of other rules and level sets are about the same runs.
    of_agents = families_of(runs, lambda row: (row.game, row.agent))
    return AnalysisResults(
        plan=dataclasses.replace(
            plan_used(context),
            primary_rule=primary if primary in study.rules else study.rules[0],
        ),
        source=SourceSummary(n_runs=sum(max(row.n for row in same) for same in of_agents), **study.labels),
        floors=tuple(floor_rows),
        floor_comparisons=compared_rows,
        agent_floor_comparisons=compared_rows,
        call_counts=call_counts(compared_rows),
        problems=tuple(dict.fromkeys(problems)),
        gaps=(),
    )


def _is_floor(row: Summary, floor: str) -> bool:
    if floor:
        return row.agent == floor
    return re.sub(r"[\W_]", "", row.agent.lower()) in _FLOOR_NAMES or row.rule.lower() in _FLOOR_NAMES


def _floor_of(game: str, level_set: str, own: Sequence[Summary], floor: str, mode: str) -> StatedFloor | None:
    """The floor of a game: in the table, as stated, or among those that ship with gapfloor."""
    if own:
        same = [each for each in own if (each.game, each.level_set) == (game, level_set)]
        return StatedFloor(same[-1].mean, same[-1].sem, same[-1].n, "") if same else None
    if floor and floor != "registry":
        stated = stated_floors(floor)
        return stated.get(game) or stated.get("")
    return find_known_floor(game, mode, level_set)


@dataclass(frozen=True)
class MeanComparison(FamilyTest):
    """A published mean and the floor that it is compared with."""

    row: Summary
    floor: StatedFloor
    least_runs: int

    words = CALLS

    @property
    def not_tested(self) -> str:  # type: ignore[override]
        """Why nothing can be tested; empty where it can."""
        row, floor = self.row, self.floor
        if row.n >= self.least_runs and math.isfinite(row.sem) and math.isfinite(floor.sem):
            return ""
        if not row.n:
            return "the number of runs is not given: --label n=10"
        if not math.isfinite(row.sem):
            return "no spread over runs"
        return "the floor has no error" if not math.isfinite(floor.sem) else counted(row.n, "run")

    def estimate(self, *, alpha: float | None = None) -> Estimate:
        """The difference from the floor with its interval at 1 - alpha."""
        row, floor, p, ends = self.row, self.floor, NAN, NO_PAIR
        delta = row.mean - floor.mean
        if not self.not_tested:
            floor_df = float(floor.n - 1) if floor.n > 1 else _MANY
            parts = VariancePart(row.sem**2, row.n - 1), VariancePart(floor.sem**2, floor_df)
            p = two_part_p(delta, *parts)
            ends = NO_PAIR if alpha is None else two_part_interval(delta, *parts, alpha=alpha)
        return Estimate(
            value=delta, se=math.hypot(row.sem, floor.sem), low=ends[0], high=ends[1], p=p,
            confidence=NAN if alpha is None else 1 - alpha, method="recommended, from means",
        )  # fmt: skip


def _compared(context: PlannedStudy, pairs: Sequence[MeanComparison]) -> Iterator[ComparisonRow]:
    """The rows with Holm's correction over the games of an agent, rule and level set."""
    alpha = context.plan.floor.alpha
    for members in families_of(pairs, lambda one: (one.row.agent, one.row.rule, one.row.level_set)):
        for call in call_family(members, alpha=alpha):
            row, floor, delta = call.test.row, call.test.floor, call.estimate
            family = f"floor: {', '.join(filter(None, (row.rule, row.level_set, row.agent)))}"
            yield ComparisonRow(
                **context.row(
                    "floor comparison", Place(row.game, context.study.modes[0], ""), n=row.n, rules=(row.rule,),
                    level_sets=(row.level_set,), agent=row.agent, names=(row.agent,),
                ),
                mean=row.mean, sem=row.sem, floor=floor.mean, floor_sem=floor.sem, floor_n=floor.n,
                delta=delta if call.divisor else dataclasses.replace(delta, confidence=1 - alpha),
                decision=Decision(
                    call=call.call, p_adjusted=call.p_holm, family=family, family_size=call.family_size,
                    reason=call.not_tested,
                ),
            )  # fmt: skip
