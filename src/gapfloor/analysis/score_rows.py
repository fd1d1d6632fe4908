"""Rows of normalised scores and their suite means."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from gapfloor.analysis.grouping import Place
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import ScoreRow
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.normalised import between, published_scale

#: The name of the unweighted mean over games.
SUITE = "mean"


def normalised_rows(context: PlannedStudy) -> tuple[ScoreRow, ...]:
    """Scores of every game that has a scale, then the unweighted means over the games of a budget."""
    study, rows = context.study, []
    suites: dict[tuple[Place, str, str, str | None], list[float]] = {}
    whose: list[tuple[str | None, str]] = [(agent, rule) for agent in context.pools for rule in study.rules]

    def row(place: Place, rule: str, level_set: str, agent: str | None, n: int, **fields: Any) -> ScoreRow:
        about = context.row("score", place, n=n, rules=(rule,), level_sets=(level_set,), agent=agent)
        return ScoreRow(**about, **fields)

    for place, (agent, rule), level_set in product(
        study.places, [*whose, (None, FLOOR_RULE)], study.level_sets
    ):
        scale, floor = score_scale(context, place, level_set), study.floor(place, level_set)
        means = [sample.mean for sample in study.runs(place, rule, level_set, agent=agent).values()]
        n = len(means)
        if rule == FLOOR_RULE:
            means, n = ([floor.mean], floor.returns.size) if floor is not None else ([], 0)
        if scale is not None and n:
            score, (low, high) = between(float(np.mean(sorted(means))), *scale), map(float, scale)
            rows.append(row(place, rule, level_set, agent, n, score=score, r_min=low, r_max=high))
            suites.setdefault((place._replace(game=SUITE), rule, level_set, agent), []).append(score)
    for who, scores in suites.items():
        rows.append(row(*who, len(scores), score=float(np.mean(sorted(scores))), r_min=NAN, r_max=NAN))
    return tuple(rows)


def score_scale(context: PlannedStudy, place: Place, level_set: str) -> tuple[float, float] | None:
    """The returns that count as 0 and 1: the floor and the plan's upper reference, or the published constants."""
    upper = (context.plan.normalised.upper or {}).get(place.game)
    if upper is None:
        return published_scale(place.game, place.mode)
    floor = context.study.floor(place, level_set)
    return (floor.mean, upper) if floor is not None else None
