"""Rows of normalised scores, their suite means, and robust summaries of the suite."""

from __future__ import annotations

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import ProfileRow, ScoreRow
from gapfloor.statistics.aggregate import improvement_over, performance_profile
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.normalised import between, has_scale, score_range

#: The name of the unweighted mean over games.
SUITE = "mean"
#: Where the performance profile is read.
TAUS = tuple(round(-0.5 + 0.05 * i, 2) for i in range(31))


def normalised_rows(context: PlannedStudy) -> tuple[ScoreRow, ...]:
    """Scores of every game that has a scale, then the unweighted means over the games of a budget."""
    rows: list[ScoreRow] = []
    for game, mode, budget in context.study.places():
        for rule in (*context.study.rules, FLOOR_RULE):
            for level_set in context.study.level_sets:
                scale = score_scale(context, (game, mode, budget), level_set)
                mean, n = _mean_return(context, (game, mode, budget), rule, level_set)
                if scale is None or not n:
                    continue
                low, high = scale
                row = context.row(
                    "score", game=game, mode=mode, budget=budget, n=n, rules=(rule,), level_sets=(level_set,)
                )
                score = between(mean, low, high)
                rows.append(
                    ScoreRow(
                        **row,
                        rule=rule,
                        level_set=level_set,
                        score=score,
                        r_min=float(low),
                        r_max=float(high),
                    )
                )
    return (*rows, *_suite_means(context, rows))


def score_scale(
    context: PlannedStudy, place: tuple[str, str, str], level_set: str
) -> tuple[float, float] | None:
    """The returns that count as 0 and 1: the floor and the plan's upper reference, or the published constants."""
    game, mode, _ = place
    upper = (context.plan.normalised.upper or {}).get(game)
    if upper is None:
        return score_range(game, mode=mode) if has_scale(game, mode=mode) else None
    floor = context.study.floor(*place, level_set)
    return (floor.mean, upper) if floor is not None else None


def _mean_return(
    context: PlannedStudy, place: tuple[str, str, str], rule: str, level_set: str
) -> tuple[float, int]:
    if rule == FLOOR_RULE:
        floor = context.study.floor(*place, level_set)
        return (floor.mean, floor.returns.size) if floor is not None else (NAN, 0)
    values = sorted(sample.mean for sample in context.study.runs(*place, rule, level_set).values())
    return (float(np.mean(values)), len(values)) if values else (NAN, 0)


def _suite_means(context: PlannedStudy, rows: list[ScoreRow]) -> list[ScoreRow]:
    groups: dict[tuple[str, str, str, str], list[float]] = {}
    for row in rows:
        groups.setdefault((row.mode, row.budget, row.rule, row.level_set), []).append(row.score)
    means = []
    for (mode, budget, rule, level_set), scores in groups.items():
        shared = context.row(
            "score",
            game=SUITE,
            mode=mode,
            budget=budget,
            n=len(scores),
            rules=(rule,),
            level_sets=(level_set,),
        )
        means.append(
            ScoreRow(
                **shared,
                rule=rule,
                level_set=level_set,
                score=float(np.mean(sorted(scores))),
                r_min=NAN,
                r_max=NAN,
            )
        )
    return means


def profile_rows(context: PlannedStudy) -> tuple[ProfileRow, ...]:
    """IQM, performance profile and mean probability of improvement of every budget, rule and level set."""
    rows = []
    places = context.study.places()
    for mode, budget in dict.fromkeys((mode, budget) for _, mode, budget in places):
        games = [game for game, m, b in places if (m, b) == (mode, budget)]
        for rule in context.study.rules:
            for level_set in context.study.level_sets:
                row = _profile(context, games, mode, budget, rule, level_set)
                if row is not None:
                    rows.append(row)
    return tuple(rows)


def _profile(
    context: PlannedStudy, games: list[str], mode: str, budget: str, rule: str, level_set: str
) -> ProfileRow | None:
    scores, better = [], []
    for game in sorted(games):
        samples = list(context.study.runs(game, mode, budget, rule, level_set).values())
        scale = score_scale(context, (game, mode, budget), level_set)
        if not samples or scale is None:
            continue
        scores.append([between(sample.mean, *scale) for sample in samples])
        floor = context.study.floor(game, mode, budget, level_set)
        if floor is not None:
            improved = sorted(improvement_over(sample.returns, floor.returns) for sample in samples)
            better.append(float(np.mean(improved)))
    if not scores:
        return None
    row = context.row(
        "profile", game=SUITE, mode=mode, budget=budget, n=len(scores), rules=(rule,), level_sets=(level_set,),
        unnamed="the plan does not name profiles",
    )  # fmt: skip
    resamples = min(context.plan.intervals.resamples, 2000)
    found = performance_profile(
        scores,
        taus=TAUS,
        rng=context.rng(row["seed"]),
        confidence=context.plan.intervals.confidence,
        n_resamples=resamples,
    )
    return ProfileRow(
        **row,
        rule=rule,
        level_set=level_set,
        profile=found,
        p_improvement=float(np.mean(better)) if better else NAN,
    )
