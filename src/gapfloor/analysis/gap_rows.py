"""Rows about the gap between training and held-out levels, tested by one method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gapfloor.analysis.compared import Compared, in_families
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import Estimate, GapRow, RunGap
from gapfloor.statistics.behrens_fisher import VariancePart, two_part_p
from gapfloor.statistics.conventions import GENERATOR, Ints, sem
from gapfloor.statistics.families import FamilyCall
from gapfloor.statistics.gap_calls import ExcessTest, call_gap_family, excess_gap
from gapfloor.statistics.gaps import GAP_WORDS, Gap, call_gaps, gap
from gapfloor.statistics.sentences import gap_is_established, may_say_played_levels_differ


@dataclass(frozen=True)
class GapComparison(Compared):
    """Runs on training levels and on held-out levels, with the floor on both."""

    words = GAP_WORDS
    call_paper = staticmethod(call_gaps)
    call_recommended = staticmethod(call_gap_family)

    @cached_property
    def levels(self) -> list[Ints]:
        """The training and held-out levels that at least one run has played; empty where seeds are unknown."""
        halves = zip(*self.runs.values(), strict=True)
        return [
            np.unique(np.concatenate([sample.levels for sample in half]))
            if all(sample.levels.size for sample in half)
            else np.zeros(0, dtype=np.int64)
            for half in halves
        ]

    @property
    def n_shared(self) -> int | None:
        """Levels in both of them; None where seeds are unknown."""
        train, test = self.levels
        return np.intersect1d(train, test, assume_unique=True).size if train.size and test.size else None

    @cached_property
    def paper_test(self) -> Gap:
        """Means over runs, Welch per run, Fisher over runs, and a percentile bootstrap interval."""
        trains, tests = zip(*self.runs.values(), strict=True)
        return gap(
            [train.level_units for train in trains],
            [test.level_units for test in tests],
            **self.context.resampling(self.seed),
        )

    @cached_property
    def recommended_test(self) -> ExcessTest:
        """The excess over the floor's gap, over different runs, before its family is known."""
        trains, tests = zip(*self.distinct.values(), strict=True)
        train_floor, test_floor = (
            None if floor is None else (floor.returns, floor.levels) for floor in self.floors
        )
        return excess_gap(
            [(train.returns, train.levels) for train in trains],
            [(test.returns, test.levels) for test in tests],
            train_floor=train_floor,
            test_floor=test_floor,
            least_runs=self.context.plan.least_runs,
        )

    def row(self, call: FamilyCall) -> GapRow:
        """The gap with its call."""
        test, error = self.paper_test, self.paper_test.sem
        if test.n == 1:
            error = float(np.hypot(sem(self.samples[0].level_units), sem(self.samples[1].level_units)))
        return GapRow(
            **self.labels,
            train=test.train,
            train_sem=test.train_sem,
            test=test.test,
            test_sem=test.test_sem,
            gap=test.mean,
            gap_sem=error,
            decision=self.decision(call),
            **self._floor_gap(),
            n_levels_played=(self.levels[0].size, self.levels[1].size),
            n_shared=self.n_shared,
            runs=tuple(
                RunGap(agent=name.agent, seed=name.seed, train=run.train, test=run.test, gap=run.gap, p=run.p)
                for name, run in zip(self.runs, test.runs, strict=True)
            ),
            **(self._paper(call) if isinstance(call.test, Gap) else self._recommended(call)),
        )

    def _paper(self, call: FamilyCall) -> dict[str, Any]:
        test: Gap = call.test
        return {
            "estimate": Estimate(
                value=test.mean, se=test.sem, low=test.ci[0], high=test.ci[1], confidence=test.confidence,
                p=test.p_fisher, method="paper",
            ),
            "stouffer_z": test.stouffer_z,
            "is_established": call.call == "train higher" and not self.n_shared,
            "levels_differ": call.call in GAP_WORDS,
        }  # fmt: skip

    def _recommended(self, call: FamilyCall) -> dict[str, Any]:
        test: ExcessTest = call.test
        return {
            "estimate": Estimate(
                value=test.excess, se=test.se, low=call.interval[0], high=call.interval[1],
                confidence=call.confidence, p=test.p, estimand=GENERATOR, method="recommended",
            ),
            "slope": test.slope,
            "n_levels": test.n_levels,
            "is_established": gap_is_established(call) and not self.n_shared,
            "levels_differ": may_say_played_levels_differ(call),
        }  # fmt: skip

    def _floor_gap(self) -> dict[str, Any]:
        """The floor's own gap, with both samples' errors, and its p with Bonferroni's correction over the games."""
        train, test = self.floors
        if train is None or test is None:
            return {}
        found = {"floor_gap": train.mean - test.mean}
        if min(train.units.size, test.units.size) < 2:
            return found
        errors = [sem(np.sort(floor.units)) for floor in (train, test)]
        parts = [
            VariancePart(error**2, floor.returns.size - 1)
            for error, floor in zip(errors, (train, test), strict=True)
        ]
        games = sum(place.budget == self.place.budget for place in self.context.study.places)
        return {
            **found,
            "floor_gap_sem": float(np.hypot(errors[0], errors[1])),
            "floor_gap_p": float(min(1.0, two_part_p(found["floor_gap"], *parts) * games)),
        }


def gap_families(context: PlannedStudy) -> list[list[GapComparison]]:
    """The gap of every game, budget and rule, of each of the plan's pools, by families of tests."""
    study, found = context.study, []
    for agent in context.pools:
        for place, rule in [(place, rule) for place in study.places for rule in study.rules]:
            both: dict[RunName, tuple[RunSample, ...]] = {**study.halves(place, rule, agent=agent)}
            if both:
                names = (agent,) if agent is not None else ()
                values = {"rule": rule, "budget": place.budget}
                family = [values[name] for name in context.plan.gaps.family]
                found.append(
                    GapComparison(
                        context=context,
                        labels=context.row(
                            "gap", place, n=len(both), rules=(rule,), agent=agent, names=names
                        ),
                        family=context.naming(place, (rule,)).family_of("gap", *family, *names),
                        runs=both,
                        floors=(context.floor(place, "train"), context.floor(place, "test")),
                        distinct=study.distinct(both, place),
                    )
                )
    return in_families(found)
