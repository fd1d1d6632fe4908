"""Rows of returns alone: the floors, the returns of agents, and normalised scores with their suite means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from gapfloor.analysis.grouping import Place, RunSample
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import ReturnRow, ScoreRow
from gapfloor.statistics.conventions import NAN, sem
from gapfloor.statistics.normalised import between, published_scale

#: The name of the unweighted mean over games.
SUITE = "mean"


def floor_rows(context: PlannedStudy) -> tuple[ReturnRow, ...]:
    """Every reference on every level set."""
    study = context.study
    rows = [
        return_row(context, [sample], Place(game, mode, budget), level_set, reference=reference)
        for (game, mode, budget, reference, level_set), sample in study.references.items()
    ]
    rows.sort(
        key=lambda row: (
            row.reference != FLOOR_RULE, row.reference, study.games.index(row.game), row.budget, row.level_set
        )
    )  # fmt: skip
    return tuple(rows)


def return_row(
    context: PlannedStudy,
    samples: Sequence[RunSample],
    place: Place,
    level_set: str,
    *,
    agent: str | None = None,
    rule: str = "",
    reference: str = "",
    **more: Any,
) -> ReturnRow:
    """The return of an agent's runs under a rule, or of a reference, which is one sample."""
    values, first = np.sort([sample.mean for sample in samples]), samples[0]
    n_episodes = sum(sample.returns.size for sample in samples)
    labels = context.row(
        "floor" if reference else "return",
        place,
        n=n_episodes if reference else len(samples),
        rules=(reference or rule,),
        level_sets=(level_set,),
        agent=agent,
        names=(agent,) if agent is not None else (),
    )
    fields = {
        "rule": rule,
        "mean": float(values.mean()),
        "sem": sem(values) if len(samples) > 1 else sem(first.units),
        "n_episodes": n_episodes,
        "n_draws": len(first.draws),
        "n_levels": np.unique(np.concatenate([sample.levels for sample in samples])).size,
        "n_networks": max(1, first.network_means.size),
    }
    return ReturnRow(reference=reference, **{**labels, **fields, **more})


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
