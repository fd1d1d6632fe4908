"""Rows about the floor: the floors themselves, and runs compared with them by one method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from gapfloor.analysis.compared import Compared, Runs, called_rows
from gapfloor.analysis.grouping import Place, RunSample
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.planned_study import PlannedStudy, families_of
from gapfloor.analysis.rows import CallCount, ComparisonRow, Equivalence, ReturnRow
from gapfloor.plan.model import Method
from gapfloor.statistics.conventions import NAN, NO_PAIR, THESE_RUNS, Floats, Pair, do_not_differ, sem
from gapfloor.statistics.families import FamilyCall
from gapfloor.statistics.reference_calls import (
    FloorComparison,
    ReferenceTest,
    compare_to_floor,
    compare_to_reference,
)
from gapfloor.statistics.welch import equivalence_unreachable, moments, t_interval, welch_of_moments


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


@dataclass(frozen=True)
class ReferenceComparison(Compared):
    """Runs and the reference that they are compared with, on one level set."""

    @property
    def floor(self) -> RunSample:
        """The reference."""
        (floor,) = self.floors
        assert floor is not None
        return floor

    @property
    def seen(self) -> Pair:
        """The lowest and the highest return of an episode, of the runs and of the reference."""
        samples = [self.floor, *self.samples]
        return min(float(s.returns.min()) for s in samples), max(float(s.returns.max()) for s in samples)

    def values(self, method: Method) -> Floats:
        """The value of each run that a method uses, in ascending order: the recommended one leaves copies out."""
        used = self.distinct if method == "recommended" else self.runs
        return np.sort([sample.mean for (sample,) in used.values()])

    @cached_property
    def paper_test(self) -> FloorComparison:
        """Welch's test of run values against episodes, TOST, and a percentile bootstrap interval."""
        return compare_to_floor(
            self.values("paper"),
            self.floor.units,
            margin=self.context.margin(self.floor, *self.samples),
            **self.context.resampling(self.labels["seed"]),
        )

    @cached_property
    def recommended_test(self) -> ReferenceTest:
        """The recommended test, before its family is known."""
        return compare_to_reference(
            self.values("recommended"),
            self.floor.units,
            seen=self.seen,
            margin=self.context.margin(self.floor, *self.samples),
            least_runs=self.context.plan.least_runs,
            is_called_later=True,
        )

    def row(self, call: FamilyCall) -> ComparisonRow:
        """The comparison with its call."""
        test, decision, units = call.test, self.decision(call), np.sort(self.floor.units)
        values, different = self.values(test.method), self.values("recommended")
        delta, floor = call.estimate, float(units.mean())
        if test.method == "recommended" and decision.call == "not tested":
            low, high = self._episode_interval()
            confidence = self.context.plan.intervals.confidence
            delta = replace(delta, low=low, high=high, confidence=confidence, p=NAN, estimand=THESE_RUNS)

        def leaves_room(sample: Floats) -> bool:
            # Whether the error of a sample's mean alone does not rule equivalence out.
            return sample.size < 2 or not equivalence_unreachable(
                margin=test.margin, sem=sem(sample), n=sample.size, alpha=self.context.plan.floor.alpha
            )

        return ComparisonRow(
            **{**self.labels, "n": test.n},
            mean=test.mean,
            sem=test.sem,
            floor=floor,
            floor_sem=sem(units),
            floor_n=units.size,
            delta=delta,
            decision=decision,
            equivalence=Equivalence(
                p=test.p_tost,
                p_adjusted=call.p_tost_holm,
                margin=test.margin,
                is_reachable=leaves_room(units),
                runs_allow=leaves_room(different),
            ),
            runs_above=int(np.count_nonzero(values > floor)),
            n_copies=len(self.runs) - len(self.distinct),
            widened="" if decision.call == "not tested" else test.widened,
        )

    def _episode_interval(self) -> Pair:
        """Student's interval of the difference over episodes: these runs on new episodes of these levels."""
        samples = [sample for (sample,) in self.distinct.values()]
        returns = np.concatenate([sample.returns for sample in samples])
        # In a census episodes of one level are not independent, and equal ones say nothing about an error.
        if (
            any(sample.is_census for sample in (self.floor, *samples))
            or do_not_differ(self.floor.units, scale=max(map(abs, self.seen)))
            or returns.size < 2
        ):
            return NO_PAIR
        test = welch_of_moments(moments(np.sort(returns)), moments(np.sort(self.floor.units)))
        return t_interval(
            test.difference, test.se, test.df, confidence=self.context.plan.intervals.confidence
        )


def comparisons(
    context: PlannedStudy, *, agents: Sequence[str | None] | None = None, reference: str = ""
) -> list[ReferenceComparison]:
    """Runs (by default of the plan's pools) with a reference (by default the plan's)."""
    planned, study, found = context.plan.floor.reference, context.study, []
    reference = reference or planned
    for agent, condition in product(context.pools if agents is None else agents, study.conditions):
        place, rule, level_set = condition.place, condition.rule, condition.level_set
        samples = study.runs(place, rule, level_set, agent=agent)
        floor = study.floor(place, level_set, reference=reference)
        if not samples or floor is None or floor.returns.size < 2:
            continue
        unnamed = "" if agent in context.pools else "the plan does not name comparisons of single agents"
        if reference != planned:
            unnamed = f"the plan does not name comparisons with the reference '{reference}'"
        about: dict[str, Any] = {"rules": (rule,), "level_sets": (level_set,), "unnamed": unnamed}
        labels = context.row(
            "floor comparison", place, n=len(samples), agent=agent, names=(agent or "", reference), **about
        )
        shared = [getattr(condition, name) for name in context.plan.floor.family]
        runs: Runs = {name: (one,) for name, one in samples.items()}
        found.append(
            ReferenceComparison(
                context=context,
                labels={**labels, "reference": reference},
                family=context.naming(place, **about).family_of("floor", *shared, agent or ""),
                runs=runs,
                floors=(floor,),
                distinct=study.distinct(runs, place),
            )
        )
    return found


def stricter_rows(context: PlannedStudy, references: Iterable[str]) -> tuple[ComparisonRow, ...]:
    """Comparisons with stricter references than the plan's."""
    found = (called_rows(comparisons(context, reference=reference)) for reference in references)
    return tuple(row for rows in found for row in rows)


def call_counts(rows: Iterable[ComparisonRow]) -> tuple[CallCount, ...]:
    """How many games got which call, per budget, rule and level set."""
    words = ("above", "below", "equivalent", "not distinguishable", "not tested")
    families = families_of(rows, lambda row: (row.agent, row.budget, row.rule, row.level_set))
    return tuple(
        CallCount(
            agent=members[0].agent,
            budget=members[0].budget,
            rule=members[0].rule,
            level_set=members[0].level_set,
            games=len(members),
            **{word.replace(" ", "_"): sum(row.call == word for row in members) for word in words},
            z_not_above=sum(not row.z > 2 for row in members),
        )
        for members in families
    )
