"""Rows about the gap between training and held-out levels, tested by one method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gapfloor.analysis.grouping import Place, RunName, RunSample
from gapfloor.analysis.planned_study import PlannedStudy, families_of
from gapfloor.analysis.rows import Decision, Estimate, GapRow, RunGap
from gapfloor.plan.model import Method
from gapfloor.statistics.components import VariancePart, components_p
from gapfloor.statistics.conventions import GENERATOR, NAN, Ints, sem
from gapfloor.statistics.distinct import distinct
from gapfloor.statistics.families import holm, word_of
from gapfloor.statistics.gap_calls import GAP_WORDS, Episodes, ExcessTest, call_gap_family, excess_gap
from gapfloor.statistics.gaps import Gap, gap
from gapfloor.statistics.sentences import gap_is_established, may_say_played_levels_differ
from gapfloor.tables.cells import counted


@dataclass(frozen=True)
class GapHalves:
    """The runs of a gap with both of their halves, before anything is tested."""

    place: Place
    labels: dict[str, Any]
    """The labels of the row."""
    family: str
    both: dict[RunName, tuple[RunSample, RunSample]]
    floors: tuple[RunSample | None, RunSample | None]
    """The floor on training and held-out levels."""
    found: Gap
    """Means over runs, and the paper's tests of them."""

    distinct: dict[RunName, tuple[RunSample, RunSample]]
    """The runs without copies."""

    @cached_property
    def levels(self) -> tuple[Ints, Ints]:
        """The training and held-out levels that at least one run has played; empty where seeds are unknown."""
        trains, tests = zip(*self.both.values(), strict=True)
        return _levels(trains), _levels(tests)

    @property
    def n_shared(self) -> int | None:
        """Levels in both of them; None where seeds are unknown."""
        train, test = self.levels
        return np.intersect1d(train, test, assume_unique=True).size if train.size and test.size else None

    @property
    def floor_gap(self) -> float:
        """The floor's own train - test; NaN without a floor."""
        train, test = self.floors
        return train.mean - test.mean if train is not None and test is not None else NAN


def gap_families(context: PlannedStudy) -> list[list[GapHalves]]:
    """The gap of every game, budget and rule, of each of the plan's pools, by families of tests."""
    study, found = context.study, []
    for agent in context.pools:
        for place, rule in [(place, rule) for place in study.places for rule in study.rules]:
            both = study.halves(place, rule, agent=agent)
            if not both:
                continue
            names = (agent,) if agent is not None else ()
            row = context.row(
                "gap", place, n=len(both), rules=(rule,), unnamed=context.beyond_looks, names=names
            )
            naming = context.naming(place, (rule,), unnamed=context.beyond_looks)
            values = {"rule": rule, "budget": place.budget}
            family = naming.family_of("gap", *(values[name] for name in context.plan.gaps.family), *names)
            test = gap(
                [train.level_units for train, _ in both.values()],
                [test.level_units for _, test in both.values()],
                rng=context.rng(row["seed"]),
                **context.resampling,
            )
            found.append(
                GapHalves(
                    place=place,
                    labels={**row, "rule": rule, "agent": agent},
                    family=family,
                    both=both,
                    floors=(context.floor(place, "train"), context.floor(place, "test")),
                    found=test,
                    distinct=study.distinct(both, place),
                )
            )
    families = families_of(found, lambda one: (one.family, one.place.mode))
    return [[found[i] for i in members] for members in families]


def gap_rows(
    context: PlannedStudy, families: Sequence[Sequence[GapHalves]], *, method: Method | None = None
) -> tuple[GapRow, ...]:
    """The gap of every game, budget and rule, with the calls of one method (the plan's)."""
    make = _recommended_rows if (method or context.gap_method) == "recommended" else _paper_rows
    return context.in_order(row for family in families for row in make(context, family))


def _paper_rows(context: PlannedStudy, family: Sequence[GapHalves]) -> list[GapRow]:
    """The paper's tests: Welch per run, Fisher over runs, Holm over games; percentile bootstrap intervals."""
    rows = []
    for one, p in zip(family, holm([one.found.p_fisher for one in family]), strict=True):
        test = one.found
        has_enough = len(one.distinct) >= context.plan.least_runs
        word = word_of(float(p) if has_enough else NAN, test.mean, GAP_WORDS, alpha=context.plan.floor.alpha)
        is_tested = word != "not tested"
        rows.append(
            GapRow(
                **_shared(context, one),
                estimate=Estimate(
                    value=test.mean, se=test.sem, low=test.ci[0], high=test.ci[1], confidence=test.confidence,
                    p=test.p_fisher, method="paper",
                ),
                decision=Decision(
                    call=word,
                    p_adjusted=float(p) if is_tested else NAN,
                    family=one.family,
                    family_size=len(family),
                    reason="" if is_tested else counted(len(one.distinct), "run"),
                ),
                stouffer_z=test.stouffer_z,
                is_established=word == "train higher" and not one.n_shared,
                levels_differ=word in ("train higher", "test higher"),
            )
        )  # fmt: skip
    return rows


def _recommended_rows(context: PlannedStudy, family: Sequence[GapHalves]) -> list[GapRow]:
    """The recommended tests (docs/methods.md): the excess over the floor's gap, for new runs on new levels."""
    calls = call_gap_family([excess(context, one) for one in family], alpha=context.plan.floor.alpha)
    rows = []
    for one, call in zip(family, calls, strict=True):
        test = call.test
        is_tested = call.call != "not tested"
        rows.append(
            GapRow(
                **_shared(context, one),
                estimate=Estimate(
                    value=test.excess, se=test.se, low=call.interval[0], high=call.interval[1],
                    confidence=call.confidence, p=test.p, estimand=GENERATOR, method="recommended",
                ),
                decision=Decision(
                    call=call.call,
                    p_adjusted=call.p_holm,
                    family=one.family,
                    family_size=call.family_size,
                    reason="" if is_tested else test.not_tested,
                ),
                slope=test.slope,
                n_levels=test.n_levels,
                is_established=gap_is_established(call) and not one.n_shared,
                levels_differ=may_say_played_levels_differ(call),
            )
        )  # fmt: skip
    return rows


def _shared(context: PlannedStudy, one: GapHalves) -> dict[str, Any]:
    """The fields that do not depend on the method."""
    found, error = one.found, one.found.sem
    if found.n == 1:
        train, test = next(iter(one.both.values()))
        error = float(np.hypot(sem(train.level_units), sem(test.level_units)))
    return {
        **one.labels,
        "train": found.train,
        "train_sem": found.train_sem,
        "test": found.test,
        "test_sem": found.test_sem,
        "gap": found.mean,
        "gap_sem": error,
        "floor_gap": one.floor_gap,
        **_floor_gap_error(context, one),
        "n_levels_played": (one.levels[0].size, one.levels[1].size),
        "n_shared": one.n_shared,
        "runs": tuple(
            RunGap(agent=name.agent, seed=name.seed, train=run.train, test=run.test, gap=run.gap, p=run.p)
            for name, run in zip(one.both, found.runs, strict=True)
        ),
    }


def excess(context: PlannedStudy, one: GapHalves) -> ExcessTest:
    """The recommended test of a gap, over different runs, before its family is known."""
    train_floor, test_floor = (None if floor is None else _episodes(floor) for floor in one.floors)
    return excess_gap(
        [_episodes(train) for train, _ in one.distinct.values()],
        [_episodes(test) for _, test in one.distinct.values()],
        train_floor=train_floor,
        test_floor=test_floor,
        least_runs=context.plan.least_runs,
    )


def _levels(samples: Sequence[RunSample]) -> Ints:
    if not all(sample.levels.size for sample in samples):
        return np.zeros(0, dtype=np.int64)
    return distinct(np.concatenate([sample.levels for sample in samples]))


def _episodes(sample: RunSample) -> Episodes:
    return sample.returns, sample.levels


def _floor_gap_error(context: PlannedStudy, one: GapHalves) -> dict[str, float]:
    """Whether random play differs between the level sets: both samples' errors, Bonferroni over the games."""
    train, test = one.floors
    if train is None or test is None or min(train.units.size, test.units.size) < 2:
        return {}
    errors = [sem(np.sort(floor.units)) for floor in (train, test)]
    parts = [
        VariancePart(error**2, floor.returns.size - 1)
        for error, floor in zip(errors, (train, test), strict=True)
    ]
    games = sum(place.budget == one.place.budget for place in context.study.places)
    return {
        "floor_gap_sem": float(np.hypot(errors[0], errors[1])),
        "floor_gap_p": float(min(1.0, components_p(one.floor_gap, parts) * games)),
    }
