"""Rows about the gap between training and held-out levels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gapfloor.analysis.gap_results import GapResult, RunGap
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.robust_rows import complete_gap_family, robust_gap_estimates
from gapfloor.analysis.row_context import Context, family_name
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.families import holm
from gapfloor.statistics.gaps import gap


def halves(
    context: Context, place: tuple[str, str, str], rule: str, *, agent: str | None = None
) -> dict[RunName, tuple[RunSample, RunSample]]:
    """The training and held-out samples of the runs that have both, in the order of agents and seeds."""
    train = context.study.runs(*place, rule, "train")
    test = context.study.runs(*place, rule, "test")
    names = [name for name in train if name in test and (agent is None or name.agent == agent)]
    # A run with one episode a half has no variance to test.
    names = [name for name in names if min(train[name].returns.size, test[name].returns.size) > 1]
    order = {name: i for i, name in enumerate(context.study.agents)}
    names.sort(key=lambda name: (order.get(name.agent, 0), len(name.seed), name.seed))
    return {name: (train[name], test[name]) for name in names}


def gap_rows(context: Context) -> tuple[GapResult, ...]:
    """The pooled gap of every game, budget and rule, with Holm within each family."""
    rows = []
    for place in context.study.places():
        for rule in context.study.rules:
            both = halves(context, place, rule)
            if both:
                rows.append(_gap(context, place, rule, both))
    return _correct(context, rows)


def _gap(
    context: Context, place: tuple[str, str, str], rule: str, both: dict[RunName, tuple[RunSample, RunSample]]
) -> GapResult:
    game, mode, budget = place
    row = context.row("gap", game=game, mode=mode, budget=budget, n=len(both), rules=(rule,))
    rng = context.rng(row["seed"])
    found = gap(
        [train.level_units for train, _ in both.values()],
        [test.level_units for _, test in both.values()],
        rng=rng,
        **context.resampling,
    )
    floors = (context.study.floor(*place, "train"), context.study.floor(*place, "test"))
    floor_gap = floors[0].mean - floors[1].mean if floors[0] and floors[1] else NAN
    naming = context.naming(game=game, budget=budget, rules=(rule,), level_sets=("train", "test"))
    values = {"rule": rule, "budget": budget}
    runs = tuple(
        RunGap(agent=name.agent, seed=name.seed, test=tested)
        for name, tested in zip(both, found.runs, strict=True)
    )
    return GapResult(
        **row,
        rule=rule,
        gap=found,
        p_holm=NAN,
        floor_gap=floor_gap,
        runs=runs,
        family=family_name("gap", naming, *(values[name] for name in context.plan.gaps.family)),
        family_size=0,
        robust=robust_gap_estimates(context, found, list(both.values()), floors, rng=rng),
    )


def _correct(context: Context, rows: Sequence[GapResult]) -> tuple[GapResult, ...]:
    families: dict[tuple[str, str], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault((row.family, row.mode), []).append(i)
    corrected = list(rows)
    for members in families.values():
        adjusted = holm([rows[i].gap.p_fisher for i in members])
        for i, p in zip(members, adjusted, strict=True):
            corrected[i] = complete_gap_family(
                context, dataclasses.replace(rows[i], p_holm=float(p), family_size=len(members))
            )
    return tuple(corrected)
