"""Rows about the gap between training and held-out levels, tested by one method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from gapfloor.analysis.compared import Compared, Runs
from gapfloor.analysis.grouping import levels_of
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import GapRow, RunGap
from gapfloor.statistics.behrens_fisher import VariancePart, two_part_p
from gapfloor.statistics.conventions import sem
from gapfloor.statistics.families import FamilyCall
from gapfloor.statistics.gaps import GAP_WORDS, ExcessTest, Gap, excess_gap, gap
from gapfloor.statistics.sentences import gap_is_established, may_say_played_levels_differ


@dataclass(frozen=True)
class GapComparison(Compared):
    """Runs on training levels and on held-out levels, with the floor on both."""

    @cached_property
    def paper_test(self) -> Gap:
        """Means over runs, Welch per run, Fisher over runs, and a percentile bootstrap interval."""
        trains, tests = zip(*self.runs.values(), strict=True)
        return gap(
            [train.level_units for train in trains],
            [test.level_units for test in tests],
            **self.context.resampling(self.labels["seed"]),
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
        # The levels that at least one run has played; none where seeds are unknown.
        train, test_levels = (
            levels_of(half) if all(sample.levels.size for sample in half) else np.zeros(0, dtype=np.int64)
            for half in zip(*self.runs.values(), strict=True)
        )
        known = bool(train.size and test_levels.size)
        n_shared = np.intersect1d(train, test_levels, assume_unique=True).size if known else None
        plain, test, error, more = self.paper_test, call.test, self.paper_test.sem, dict[str, Any]()
        if plain.n == 1:
            error = float(np.hypot(sem(self.samples[0].level_units), sem(self.samples[1].level_units)))
        if test.method == "paper":
            is_established, levels_differ = call.call == "train higher", call.call in GAP_WORDS
            more = {"stouffer_z": plain.stouffer_z}
        else:
            is_established, levels_differ = gap_is_established(call), may_say_played_levels_differ(call)
            more = {"slope": test.slope, "n_levels": test.n_levels}
        return GapRow(
            **self.labels,
            **{name: getattr(plain, name) for name in ("train", "train_sem", "test", "test_sem")},
            gap=plain.mean,
            gap_sem=error,
            estimate=call.estimate,
            decision=self.decision(call),
            **self._floor_gap(),
            n_levels_played=(train.size, test_levels.size),
            n_shared=n_shared,
            is_established=is_established and not n_shared,
            levels_differ=levels_differ,
            runs=tuple(
                RunGap(agent=name.agent, seed=name.seed, train=run.train, test=run.test, gap=run.gap, p=run.p)
                for name, run in zip(self.runs, plain.runs, strict=True)
            ),
            **more,
        )

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
        games = sum(place.budget == self.labels["budget"] for place in self.context.study.places)
        return {
            **found,
            "floor_gap_sem": float(np.hypot(errors[0], errors[1])),
            "floor_gap_p": float(min(1.0, two_part_p(found["floor_gap"], *parts) * games)),
        }


def gap_comparisons(context: PlannedStudy) -> list[GapComparison]:
    """The gap of every game, budget and rule, of each of the plan's pools."""
    study, reference, found = context.study, context.plan.floor.reference, []
    for agent, place, rule in product(context.pools, study.places, study.rules):
        runs: Runs = {**study.halves(place, rule, agent=agent)}
        if runs:
            names = (agent,) if agent is not None else ()
            values = {"rule": rule, "budget": place.budget}
            family = [values[name] for name in context.plan.gaps.family]
            found.append(
                GapComparison(
                    context=context,
                    labels=context.row("gap", place, n=len(runs), rules=(rule,), agent=agent, names=names),
                    family=context.naming(place, (rule,)).family_of("gap", *family, *names),
                    runs=runs,
                    floors=tuple(study.floor(place, name, reference=reference) for name in ("train", "test")),
                    distinct=study.distinct(runs, place),
                )
            )
    return found
