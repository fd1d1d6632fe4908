"""What is tested: the runs of one condition compared with a reference, or their training levels with held-out ones.

A comparison keeps the samples behind it, so that either method can test it, also again without a run or a draw. The
tests of one family are called together, and a row is written for each call, in the order of the comparisons: by agent,
then place, rule and level set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np

from gapfloor.analysis.grouping import RunName, RunSample, levels_of
from gapfloor.analysis.planned_study import PlannedStudy, families_of
from gapfloor.analysis.rows import CallCount, ComparisonRow, Decision, Equivalence, GapRow, RunGap
from gapfloor.plan.model import Method
from gapfloor.statistics.behrens_fisher import VariancePart, two_part_p
from gapfloor.statistics.conventions import NAN, NO_PAIR, THESE_RUNS, Floats, Pair, do_not_differ, sem
from gapfloor.statistics.families import FamilyCall, call_family
from gapfloor.statistics.gaps import (
    GAP_WORDS,
    ExcessTest,
    Gap,
    excess_gap,
    gap,
    gap_is_established,
    may_say_played_levels_differ,
)
from gapfloor.statistics.reference_calls import (
    FloorComparison,
    ReferenceTest,
    compare_to_floor,
    compare_to_reference,
)
from gapfloor.statistics.welch import equivalence_unreachable, moments, t_interval, welch_of_moments
from gapfloor.tables.cells import counted

#: The samples of each run: one, or two (training and held-out levels) for a gap.
Runs = dict[RunName, tuple[RunSample, ...]]
AnyCompared = TypeVar("AnyCompared", bound="Compared")


@dataclass(frozen=True)
class Compared(ABC):
    """One comparison, before anything is tested."""

    context: PlannedStudy
    labels: dict[str, Any]
    """The labels of the row."""
    family: str
    runs: Runs
    floors: tuple[RunSample | None, ...]
    """The reference on the same level sets."""
    distinct: Runs
    """The runs without copies."""

    @property
    @abstractmethod
    def paper_test(self) -> Any:
        """What the paper's test finds, before its family is known."""

    @property
    @abstractmethod
    def recommended_test(self) -> Any:
        """What the recommended test (docs/methods.md) finds, before its family is known."""

    @abstractmethod
    def row(self, call: FamilyCall) -> Any:
        """The row of the comparison with its call."""

    @cached_property
    def samples(self) -> list[RunSample]:
        """Every sample of every run."""
        return [sample for samples in self.runs.values() for sample in samples]

    @property
    def has_enough_runs(self) -> bool:
        """Whether the plan allows a test of so many different runs."""
        return len(self.distinct) >= self.context.plan.least_runs

    def decision(self, call: FamilyCall) -> Decision:
        """A call with its place in the family; without one there is no p either."""
        p, reason = call.p_holm, ""
        if call.call == "not tested":
            p, reason = NAN, call.not_tested
            if not reason or reason.endswith((" run", " runs")):
                copies = len(self.runs) - len(self.distinct)
                left_out = f", {counted(copies, 'copy', 'copies')} left out" if copies else ""
                reason = f"{counted(len(self.distinct), 'run')}{left_out}"
        elif (
            call.test.method == "recommended"
            and call.call == "equivalent"
            and not call.is_equivalent_in_family
        ):
            reason = "not after correction over games"
        return Decision(
            call=call.call, p_adjusted=p, family=self.family, family_size=call.family_size, reason=reason
        )

    def without_run(self: AnyCompared, name: RunName) -> AnyCompared:
        """The comparison without one of its runs; intervals are not for use."""
        runs, distinct = (
            {key: samples for key, samples in found.items() if key != name}
            for found in (self.runs, self.distinct)
        )
        return replace(self, context=self.context.for_calls, runs=runs, distinct=distinct)

    def without_draw(self: AnyCompared, draw: str) -> AnyCompared | None:
        """The comparison without a draw; None where no run has the draw or nothing could be tested without it."""
        if not (self.has_enough_runs and any(draw in sample.draws for sample in self.samples)):
            return None
        less = {id(sample): sample.without_draw(draw) for sample in (*self.samples, *self.floors) if sample}
        if None in less.values():
            return None
        runs: Any = {name: tuple(less[id(one)] for one in samples) for name, samples in self.runs.items()}
        floors = tuple(floor and less[id(floor)] for floor in self.floors)
        distinct = {name: runs[name] for name in self.distinct}
        return replace(self, context=self.context.for_calls, runs=runs, floors=floors, distinct=distinct)


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
        floor_gap = train.mean - test.mean
        if min(train.units.size, test.units.size) < 2:
            return {"floor_gap": floor_gap}
        errors = [sem(np.sort(floor.units)) for floor in (train, test)]
        parts = [
            VariancePart(error**2, floor.returns.size - 1)
            for error, floor in zip(errors, (train, test), strict=True)
        ]
        games = sum(place.budget == self.labels["budget"] for place in self.context.study.places)
        p = min(1.0, two_part_p(floor_gap, *parts) * games)
        return {
            "floor_gap": floor_gap,
            "floor_gap_sem": float(np.hypot(errors[0], errors[1])),
            "floor_gap_p": float(p),
        }


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


def in_families(found: Sequence[AnyCompared]) -> list[list[AnyCompared]]:
    """Comparisons by the families in which their tests are corrected."""
    return families_of(found, lambda one: (one.family, one.labels["mode"]))


def calls_of(found: Sequence[Compared], method: Method | None = None) -> list[FamilyCall]:
    """The call of each comparison within its family, by a method (the plan's)."""
    calls: dict[int, FamilyCall] = {}
    for family in in_families(found):
        context = family[0].context
        is_recommended = (method or context.method) == "recommended"
        tests = [one.recommended_test if is_recommended else one.paper_test for one in family]
        for one, call in zip(family, call_family(tests, alpha=context.plan.floor.alpha), strict=True):
            can_be_called = is_recommended or one.has_enough_runs
            calls[id(one)] = call if can_be_called else replace(call, call="not tested")
    return [calls[id(one)] for one in found]


def called_rows(found: Sequence[Compared], *, method: Method | None = None) -> tuple[Any, ...]:
    """A row per comparison with its call by one method (the plan's)."""
    return tuple(one.row(call) for one, call in zip(found, calls_of(found, method), strict=True))


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
