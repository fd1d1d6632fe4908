"""The gap with and without leaked levels: held-out levels whose layout equals a training level's.

Leaked levels are known to a trained agent, so they pull its gap towards zero; the floor knows no level, so its gap
moves only by which levels are left. And it does move: layouts repeat most often among the shortest levels, which are
the easiest, so held-out levels without leaks are harder than training levels with their twins. Hence three rows, each
with the floor's gap on the same levels: on all levels, without leaked held-out levels, and without shared layouts on
either side (the twins left out of the training levels too). Means are over runs as everywhere; nothing is tested here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.grouping import Place, RunSample, group
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import Decision, Estimate, GapRow
from gapfloor.errors import UsageError
from gapfloor.levels.overlap import Leakage, LevelOverlap
from gapfloor.plan.model import Plan
from gapfloor.statistics.conventions import NAN, Floats, sem

LeftOut = Literal["", "leaked", "shared"]
Halves = tuple[RunSample, RunSample]


@dataclass(frozen=True, kw_only=True)
class LeakedGap(GapRow):
    """A gap on the levels that are left; `n` is 0 for the floor alone, and errors are over runs, NaN for one run."""

    left_out: LeftOut
    """Nothing, `leaked` (held-out levels that equal a training level) or `shared` (also their training twins)."""
    test_left_out: float
    """Mean held-out return on the levels that are left out; NaN where none is."""
    n_episodes: int
    """Held-out episodes of the runs on the levels that are left."""
    floor_episodes: int
    """Held-out episodes of the floor on the levels that are left."""


def split_by_leak(sample: RunSample, leaked: Collection[int]) -> tuple[Floats, Floats]:
    """Returns on leaked levels and on the others."""
    if not sample.levels.size:
        raise UsageError("The episodes have no level seeds: leaked levels cannot be told from the others.")
    known = np.isin(sample.levels, sorted(leaked))
    return sample.returns[known], sample.returns[~known]


def gap_without(source: Source, leakage: Leakage) -> tuple[LeakedGap, ...]:
    """Gaps of every agent and rule on all levels and on those left, for the games that `leakage` has.

    Args:
        source: what `analyse` takes: a store, an episode file, a table, or `Inputs`.
        leakage: what `gapfloor levels` found (`gapfloor.levels.overlap.read_leakage`).
    """
    study = group(read_inputs(source), Plan.paper())
    context = PlannedStudy(study, Plan.paper())
    rows: list[LeakedGap] = []
    for place, rule in product(study.places, study.rules):
        if (overlap := leakage.of(place.game, place.mode)) is not None:
            agents = [agent for agent in study.agents if study.halves(place, rule, agent=agent)]
            for agent in [*agents, None] if len(agents) > 1 else agents:
                halves = list(study.halves(place, rule, agent=agent).values())
                rows += _rows(context, overlap, place, rule, agent, halves)
    # A game without runs: its floor is treated as a policy, so that a store of floors gets rows too.
    with_runs = {(place.game, place.mode) for place in study.places}
    for game, mode, budget, reference, level_set in study.references:
        place, overlap = Place(game, mode, budget), leakage.of(game, mode)
        if (reference, level_set) == (FLOOR_RULE, "test") and (game, mode) not in with_runs:
            train, test = (study.floor(place, name) for name in ("train", "test"))
            if overlap is not None and train is not None and test is not None:
                rows += _rows(context, overlap, place, FLOOR_RULE, None, [(train, test)])
    return tuple(rows)


def _rows(
    context: PlannedStudy,
    overlap: LevelOverlap,
    place: Place,
    rule: str,
    agent: str | None,
    halves: Sequence[Halves],
) -> Iterator[LeakedGap]:
    """On all levels, without leaked and without shared ones."""
    floors = [context.study.floor(place, name) for name in ("train", "test")]
    for known, held in [*halves, tuple(floors)]:
        for levels, sample in ((overlap.train, known), (overlap.test, held)):
            played = set() if sample is None else {int(level) for level in sample.levels}
            if outside := sorted(played - set(range(levels.start, levels.stop))):
                raise UsageError(
                    f"{overlap.game} was played on level {outside[0]}, but its leakage was checked for {overlap.train} "
                    f"and {overlap.test}: run gapfloor levels with the level sets that were played."
                )
    twins = {pair.training for pair in overlap.pairs}
    without: dict[LeftOut, tuple[Collection[int], Collection[int]]] = {
        "": ((), ()), "leaked": ((), overlap.leaked), "shared": (twins, overlap.leaked),
    }  # fmt: skip
    for left_out, (no_train, no_test) in without.items():
        parts = [split_by_leak(held, no_test) for _, held in halves]
        trains = np.array([_mean(split_by_leak(known, no_train)[1]) for known, _ in halves])
        tests = np.array([_mean(rest) for _, rest in parts])
        gap, error = float((trains - tests).mean()), sem(np.sort(trains - tests))
        floor_parts = [
            split_by_leak(floor, outside)[1] if floor else np.zeros(0)
            for floor, outside in zip(floors, (no_train, no_test), strict=True)
        ]
        yield LeakedGap(
            **context.row(
                "leaked gap", place, n=0 if rule == FLOOR_RULE else len(halves), rules=(rule,),
                agent=agent, names=(agent or "", left_out),
            ),
            train=float(trains.mean()),
            train_sem=sem(np.sort(trains)),
            test=float(tests.mean()),
            test_sem=sem(np.sort(tests)),
            gap=gap,
            gap_sem=error,
            estimate=Estimate(value=gap, se=error, method="mean over runs"),
            decision=Decision(reason="descriptive"),
            floor_gap=_mean(floor_parts[0]) - _mean(floor_parts[1]),
            n_levels=(overlap.train.n - len(no_train), overlap.test.n - len(no_test)),
            left_out=left_out,
            test_left_out=float(np.mean([_mean(leaked) for leaked, _ in parts])),
            n_episodes=sum(rest.size for _, rest in parts),
            floor_episodes=floor_parts[1].size,
        )  # fmt: skip


def _mean(returns: Floats) -> float:
    return float(np.sort(returns).mean()) if returns.size else NAN
