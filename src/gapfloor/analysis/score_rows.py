"""Rows of normalised scores and their suite means."""

from __future__ import annotations

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.grouping import Place
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import ScoreRow
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.normalised import between, has_scale, score_range

#: The name of the unweighted mean over games.
SUITE = "mean"


def normalised_rows(context: PlannedStudy) -> tuple[ScoreRow, ...]:
    """Scores of every game that has a scale, then the unweighted means over the games of a budget."""
    study, rows = context.study, []
    suites: dict[tuple[str | None, str, str, str, str], list[float]] = {}
    whose: list[tuple[str | None, str]] = [(agent, rule) for agent in context.pools for rule in study.rules]
    for place in study.places:
        for agent, rule in [*whose, (None, FLOOR_RULE)]:
            for level_set in study.level_sets:
                scale = score_scale(context, place, level_set)
                mean, n = _mean_return(context, place, rule, level_set, agent)
                if scale is not None and n:
                    score = between(mean, *scale)
                    rows.append(_score(context, place, rule, level_set, agent, n, score, scale))
                    key = (agent, place.mode, place.budget, rule, level_set)
                    suites.setdefault(key, []).append(score)
    for (agent, mode, budget, rule, level_set), scores in suites.items():
        suite, mean = Place(SUITE, mode, budget), float(np.mean(sorted(scores)))
        rows.append(_score(context, suite, rule, level_set, agent, len(scores), mean, (NAN, NAN)))
    return tuple(rows)


def _score(
    context: PlannedStudy,
    place: Place,
    rule: str,
    level_set: str,
    agent: str | None,
    n: int,
    score: float,
    scale: tuple[float, float],
) -> ScoreRow:
    row = context.row("score", place, n=n, rules=(rule,), level_sets=(level_set,), agent=agent)
    low, high = map(float, scale)
    return ScoreRow(**row, score=score, r_min=low, r_max=high)


def score_scale(context: PlannedStudy, place: Place, level_set: str) -> tuple[float, float] | None:
    """The returns that count as 0 and 1: the floor and the plan's upper reference, or the published constants."""
    upper = (context.plan.normalised.upper or {}).get(place.game)
    if upper is None:
        return score_range(place.game, mode=place.mode) if has_scale(place.game, mode=place.mode) else None
    floor = context.study.floor(place, level_set)
    return (floor.mean, upper) if floor is not None else None


def _mean_return(
    context: PlannedStudy, place: Place, rule: str, level_set: str, agent: str | None
) -> tuple[float, int]:
    if rule == FLOOR_RULE:
        floor = context.study.floor(place, level_set)
        return (floor.mean, floor.returns.size) if floor is not None else (NAN, 0)
    runs = context.study.runs(place, rule, level_set, agent=agent)
    return (float(np.mean(sorted(sample.mean for sample in runs.values()))), len(runs)) if runs else (NAN, 0)
