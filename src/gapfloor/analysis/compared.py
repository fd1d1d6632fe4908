"""What is tested: the runs of one condition compared with a reference, or their training levels with held-out ones.

A comparison keeps the samples behind it, so that either method can test it, also again without a run or a draw. The
tests of one family are called together, and a row is written for each call, in the order of the comparisons: by agent,
then place, rule and level set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.planned_study import PlannedStudy, families_of
from gapfloor.analysis.rows import Decision
from gapfloor.plan.model import Method
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.families import FamilyCall, call_family
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
