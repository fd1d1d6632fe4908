"""Rows about the floor: the floors themselves, and runs compared with them by one method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gapfloor.analysis.compared import Compared, in_families
from gapfloor.analysis.grouping import Place, RunName, RunSample
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.analysis.rows import CallCount, ComparisonRow, Equivalence, ReturnRow
from gapfloor.plan.model import Method
from gapfloor.statistics.conventions import (
    NO_PAIR,
    THESE_RUNS,
    Floats,
    Pair,
    do_not_differ,
    sem,
)
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.families import FamilyCall
from gapfloor.statistics.floor import FloorComparison, call_family, compare_to_floor
from gapfloor.statistics.reference_calls import (
    ReferenceTest,
    call_reference_family,
    compare_to_reference,
)
from gapfloor.statistics.welch import equivalence_unreachable, moments, t_interval, welch_of_moments
from gapfloor.tables.cells import counted

_WIDENED: dict[tuple[bool, bool], Literal["", "upper", "lower", "both"]] = {
    (False, False): "", (True, False): "lower", (False, True): "upper", (True, True): "both",
}  # fmt: skip


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

    words = ("above", "below")
    call_paper = staticmethod(call_family)
    call_recommended = staticmethod(call_reference_family)

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
            **self.context.resampling(self.seed),
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
        test, units = call.test, np.sort(self.floor.units)
        values, floor = self.values("paper" if _is_paper(test) else "recommended"), float(units.mean())
        decision, is_out_of_reach = self.decision(call), self._is_out_of_reach
        return ComparisonRow(
            **{**self.labels, "n": test.n},
            mean=test.mean,
            sem=test.sem,
            floor=floor,
            floor_sem=sem(units),
            floor_n=units.size,
            delta=self._estimate(call),
            decision=decision,
            equivalence=Equivalence(
                p=test.p_tost,
                p_adjusted=call.p_tost_holm,
                margin=test.margin,
                is_reachable=not is_out_of_reach(test.margin, units),
                runs_allow=not is_out_of_reach(test.margin, self.values("recommended")),
            ),
            runs_above=int(np.count_nonzero(values > floor)),
            n_copies=self.n_copies,
            widened="" if _is_paper(test) or decision.call == "not tested" else _WIDENED[test.widened],
        )

    @property
    def too_few(self) -> str:
        """How many runs there are, and how many were copies."""
        left_out = f", {counted(self.n_copies, 'copy', 'copies')} left out" if self.n_copies else ""
        return f"{super().too_few}{left_out}"

    def _estimate(self, call: FamilyCall) -> Estimate:
        test, found = call.test, {"value": call.test.delta, "se": call.test.se}
        if _is_paper(test):
            return Estimate(
                **found, df=test.df, low=test.ci[0], high=test.ci[1], confidence=test.confidence, p=test.p,
                method="paper",
            )  # fmt: skip
        if call.call == "not tested":
            (low, high), confidence = self._episode_interval(), self.context.plan.intervals.confidence
            return Estimate(
                **found, low=low, high=high, confidence=confidence, estimand=THESE_RUNS, method="recommended"
            )
        low, high = call.interval
        return Estimate(
            **found, low=low, high=high, confidence=call.confidence, p=test.p, method="recommended"
        )

    def _episode_interval(self) -> Pair:
        """Student's interval of the difference over episodes: these runs on new episodes of these levels."""
        samples = [sample for (sample,) in self.distinct.values()]
        if self.floor.is_census or any(sample.is_census for sample in samples):
            return NO_PAIR  # in a census episodes of one level are not independent
        if do_not_differ(self.floor.units, scale=max(map(abs, self.seen))):
            return NO_PAIR  # equal episodes say nothing about the error of their mean
        returns = np.concatenate([sample.returns for sample in samples])
        if returns.size < 2:
            return NO_PAIR
        test = welch_of_moments(moments(np.sort(returns)), moments(np.sort(self.floor.units)))
        return t_interval(
            test.difference, test.se, test.df, confidence=self.context.plan.intervals.confidence
        )

    def _is_out_of_reach(self, margin: float, sample: Floats) -> bool:
        """Whether the error of a sample's mean alone rules equivalence out."""
        alpha = self.context.plan.floor.alpha
        return sample.size > 1 and equivalence_unreachable(
            margin=margin, sem=sem(sample), n=sample.size, alpha=alpha
        )


def _is_paper(test: Any) -> bool:
    return isinstance(test, FloorComparison)


def comparisons(
    context: PlannedStudy, *, agents: Sequence[str | None] | None = None, reference: str = ""
) -> list[list[ReferenceComparison]]:
    """Runs (by default of the plan's pools) with a reference (by default the plan's), by families of tests."""
    reference = reference or context.plan.floor.reference
    found = []
    for agent in context.pools if agents is None else agents:
        unnamed = _unnamed(context, agent, reference)
        for condition in context.study.conditions:
            place, rule, level_set = condition.place, condition.rule, condition.level_set
            runs = context.study.runs(place, rule, level_set, agent=agent)
            floor = context.study.floor(place, level_set, reference=reference)
            if not runs or floor is None or floor.returns.size < 2:
                continue
            about: dict[str, Any] = {"rules": (rule,), "level_sets": (level_set,), "unnamed": unnamed}
            labels = context.row(
                "floor comparison", place, n=len(runs), agent=agent, names=(agent or "", reference), **about
            )
            shared = [getattr(condition, name) for name in context.plan.floor.family]
            samples: dict[RunName, tuple[RunSample, ...]] = {name: (one,) for name, one in runs.items()}
            found.append(
                ReferenceComparison(
                    context=context,
                    labels={**labels, "reference": reference},
                    family=context.naming(place, **about).family_of("floor", *shared, agent or ""),
                    runs=samples,
                    floors=(floor,),
                    distinct=context.study.distinct(samples, place),
                )
            )
    return in_families(found)


def _unnamed(context: PlannedStudy, agent: str | None, reference: str) -> str:
    """Why no plan names these comparisons, or nothing."""
    if reference != context.plan.floor.reference:
        return f"the plan does not name comparisons with the reference '{reference}'"
    return "" if agent in context.pools else "the plan does not name comparisons of single agents"


def call_counts(rows: Iterable[ComparisonRow]) -> tuple[CallCount, ...]:
    """How many games got which call, per budget, rule and level set."""
    groups: dict[tuple[str | None, str, str, str], list[ComparisonRow]] = {}
    for row in rows:
        groups.setdefault((row.agent, row.budget, row.rule, row.level_set), []).append(row)
    words = ("above", "below", "equivalent", "not distinguishable", "not tested")
    return tuple(
        CallCount(
            agent=agent,
            budget=budget,
            rule=rule,
            level_set=level_set,
            games=len(members),
            **{word.replace(" ", "_"): sum(row.call == word for row in members) for word in words},
            z_not_above=sum(not row.z > 2 for row in members),
        )
        for (agent, budget, rule, level_set), members in groups.items()
    )
