"""Rows about the floor: the floors themselves, and runs compared with them by one method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.grouping import Condition, Place, RunName, RunSample
from gapfloor.analysis.labels import natural_key
from gapfloor.analysis.planned_study import BOTH, PlannedStudy, families_of
from gapfloor.analysis.rows import CallCount, ComparisonRow, Decision, Equivalence, LookStep, ReturnRow
from gapfloor.plan.model import Method
from gapfloor.statistics.clustered import clustered_sem
from gapfloor.statistics.conventions import (
    NAN,
    NO_PAIR,
    THESE_LEVELS,
    THESE_RUNS,
    do_not_differ,
    finite_sample,
    sem,
)
from gapfloor.statistics.distinct import distinct
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.families import call_family, holm
from gapfloor.statistics.floor import compare_to_floor
from gapfloor.statistics.looks import next_runs
from gapfloor.statistics.power import equivalence_unreachable
from gapfloor.statistics.reference_calls import ReferenceCall, call_reference_family, compare_to_reference
from gapfloor.statistics.welch import moments, t_interval, welch_of_moments
from gapfloor.tables.cells import counted


def floor_rows(context: PlannedStudy) -> tuple[ReturnRow, ...]:
    """Every reference on every level set."""
    study, rows = context.study, []
    for (game, mode, budget, reference, level_set), sample in study.references.items():
        returns = finite_sample(sample.returns, "floor returns")
        place = Place(game, mode, budget)
        rows.append(
            ReturnRow(
                **context.row("floor", place, n=returns.size, rules=(reference,), level_sets=(level_set,)),
                reference=reference,
                level_set=level_set,
                mean=float(returns.mean()),
                sem=sem(sample.units),
                n_episodes=returns.size,
                n_draws=len(sample.draws),
                n_levels=distinct(sample.levels).size,
                n_networks=max(1, sample.network_means.size),
                sem_clustered=clustered_sem(sample.returns, sample.levels) if sample.levels.size else NAN,
            )
        )
    rows.sort(
        key=lambda row: (
            row.reference != FLOOR_RULE, row.reference, study.games.index(row.game), row.budget, row.level_set
        )
    )  # fmt: skip
    return tuple(rows)


@dataclass(frozen=True)
class RunsAndReference:
    """Runs and the reference that they are compared with, before anything is tested."""

    condition: Condition
    labels: dict[str, Any]
    """The labels of the row."""
    family: str
    is_planned: bool
    """Whether a plan could name the comparison."""
    runs: dict[RunName, RunSample]
    distinct: dict[RunName, RunSample]
    """The runs without copies."""
    floor: RunSample

    @property
    def seen(self) -> tuple[float, float]:
        """The lowest and the highest return of an episode, of the runs and of the reference."""
        samples = [self.floor, *self.runs.values()]
        return min(float(s.returns.min()) for s in samples), max(float(s.returns.max()) for s in samples)

    @property
    def n_copies(self) -> int:
        """Runs that repeat another one."""
        return len(self.runs) - len(self.distinct)

    @property
    def too_few(self) -> str:
        """How many runs there are, and how many were copies."""
        left_out = f", {counted(self.n_copies, 'copy', 'copies')} left out" if self.n_copies else ""
        return f"{counted(len(self.distinct), 'run')}{left_out}"


def comparisons(
    context: PlannedStudy, *, agents: Sequence[str | None] | None = None, reference: str = ""
) -> list[list[RunsAndReference]]:
    """Runs (by default of the plan's pools) with a reference (by default the plan's), by families of tests."""
    reference = reference or context.plan.floor.reference
    found = []
    for agent in context.pools if agents is None else agents:
        for condition in context.study.conditions:
            place, rule, level_set = condition.place, condition.rule, condition.level_set
            runs = context.study.runs(place, rule, level_set, agent=agent)
            floor = context.study.floor(place, level_set, reference=reference)
            if not runs or floor is None or floor.returns.size < 2:
                continue
            unnamed = _unnamed(context, agent, reference)
            row = context.row(
                "floor comparison", place, n=len(runs), rules=(rule,), level_sets=(level_set,),
                names=(agent or "", reference), unnamed=unnamed,
            )  # fmt: skip
            found.append(
                RunsAndReference(
                    condition,
                    {**row, "agent": agent, "rule": rule, "level_set": level_set, "reference": reference},
                    floor_family(context, condition, agent, unnamed=unnamed),
                    agent in context.pools and reference == context.plan.floor.reference,
                    runs,
                    context.study.distinct(runs, place),
                    floor,
                )
            )
    families = families_of(found, lambda one: (one.family, one.condition.mode))
    return [[found[i] for i in members] for members in families]


def floor_family(context: PlannedStudy, condition: Condition, agent: str | None, *, unnamed: str = "") -> str:
    """The family of a comparison with the floor."""
    rule, level_set = condition.rule, condition.level_set
    naming = context.naming(condition.place, (rule,), (level_set,), unnamed=unnamed)
    shared = (getattr(condition, name) for name in context.plan.floor.family)
    return naming.family_of("floor", *shared, agent or "")


def _unnamed(context: PlannedStudy, agent: str | None, reference: str) -> str:
    """Why no plan names this comparison, or nothing."""
    if reference != context.plan.floor.reference:
        return f"the plan does not name comparisons with the reference '{reference}'"
    if agent not in context.pools:
        return "the plan does not name comparisons of single agents"
    if context.plan.floor.looks is not None and not context.plan.scope.games:
        return "the plan has looks but does not name its games (scope.games), so the family is not fixed"
    return ""


def comparison_rows(
    context: PlannedStudy, families: Sequence[Sequence[RunsAndReference]], *, method: Method | None = None
) -> tuple[ComparisonRow, ...]:
    """Runs against a reference, with the calls of one method (the plan's)."""
    make = _recommended_rows if (method or context.floor_method) == "recommended" else _paper_rows
    return context.in_order(row for family in families for row in make(context, family))


def _paper_rows(context: PlannedStudy, family: Sequence[RunsAndReference]) -> list[ComparisonRow]:
    """The paper's tests: Welch of run values against episodes, Holm, TOST; percentile bootstrap intervals."""
    tests = [
        compare_to_floor(
            [sample.mean for sample in one.runs.values()],
            one.floor.units,
            rng=context.rng(one.labels["seed"]),
            margin=context.margin(one.floor, *one.runs.values()),
            **context.resampling,
        )
        for one in family
    ]
    calls = call_family(tests, alpha=context.plan.floor.alpha)
    equivalent = holm([test.p_tost for test in tests])
    rows = []
    for one, test, found, p_tost in zip(family, tests, calls, equivalent, strict=True):
        is_tested = len(one.distinct) >= context.plan.least_runs and found.call != "not tested"
        rows.append(
            ComparisonRow(
                **one.labels,
                mean=test.mean,
                sem=test.sem,
                floor=test.floor,
                floor_sem=test.floor_sem,
                floor_n=test.floor_n,
                delta=Estimate(
                    value=test.delta, se=test.se, df=test.df, low=test.ci[0], high=test.ci[1],
                    confidence=test.confidence, p=test.p, method="paper",
                ),
                decision=Decision(
                    call=found.call if is_tested else "not tested",
                    p_adjusted=found.p_holm if is_tested else NAN,
                    family=one.family,
                    family_size=found.family_size,
                    reason="" if is_tested else one.too_few,
                ),
                equivalence=_equivalence(context, one, test.p_tost, float(p_tost), test.margin),
                runs_above=test.runs_above,
                n_copies=one.n_copies,
            )
        )  # fmt: skip
    return rows


def _recommended_rows(context: PlannedStudy, family: Sequence[RunsAndReference]) -> list[ComparisonRow]:
    """The recommended tests (docs/methods.md), over different runs; each interval agrees with its call."""
    tests = [
        compare_to_reference(
            [sample.mean for sample in one.distinct.values()],
            one.floor.units,
            seen=one.seen,
            margin=context.margin(one.floor, *one.runs.values()),
            least_runs=context.plan.least_runs,
            is_called_later=True,
        )
        for one in family
    ]
    calls = call_reference_family(tests, alpha=context.plan.floor.alpha)
    steps: Sequence[LookStep | None] = [None] * len(family)
    if context.plan.floor.looks is not None and all(one.is_planned for one in family):
        calls, steps = _calls_at_looks(context, family)
    return [
        _recommended_row(context, one, call, step)
        for one, call, step in zip(family, calls, steps, strict=True)
    ]


def _recommended_row(
    context: PlannedStudy, one: RunsAndReference, call: ReferenceCall, step: LookStep | None
) -> ComparisonRow:
    test = call.test
    is_tested = call.call != "not tested"
    low, high = call.interval if is_tested else _episode_interval(context, one)
    words: dict[tuple[bool, bool], Literal["", "upper", "lower", "both"]] = {
        (False, False): "", (True, False): "lower", (False, True): "upper", (True, True): "both",
    }  # fmt: skip
    reason = "not after correction over games"
    if not is_tested:
        reason = one.too_few if call.not_tested.endswith((" run", " runs")) else call.not_tested
        if step is not None and not step.runs_used:
            reason = f"{counted(step.more_runs, 'run')} to add before the first look"
    elif call.call != "equivalent" or call.equivalent_in_family:
        reason = ""
    return ComparisonRow(
        **{**one.labels, "n": test.n},
        mean=test.mean,
        sem=test.sem,
        floor=test.reference,
        floor_sem=sem(np.sort(one.floor.units)),
        floor_n=test.reference_n,
        delta=Estimate(
            value=test.delta,
            se=test.se,
            low=low,
            high=high,
            confidence=call.confidence if is_tested else context.plan.intervals.confidence,
            p=test.p if is_tested else NAN,
            estimand=THESE_LEVELS if is_tested else THESE_RUNS,
            method="recommended",
        ),
        decision=Decision(
            call=call.call,
            p_adjusted=call.p_holm,
            family=one.family,
            family_size=call.family_size,
            reason=reason,
        ),
        equivalence=_equivalence(context, one, test.p_tost, call.p_tost_holm, test.margin),
        runs_above=sum(value > test.reference for value in test.run_values),
        n_copies=one.n_copies,
        widened=words[test.widened] if is_tested else "",
        look=step,
    )


def _episode_interval(context: PlannedStudy, one: RunsAndReference) -> tuple[float, float]:
    """Student's interval of the difference over episodes: these runs on new episodes of these levels."""
    if one.floor.is_census or any(sample.is_census for sample in one.distinct.values()):
        return NO_PAIR  # in a census episodes of one level are not independent
    if do_not_differ(one.floor.units, scale=max(map(abs, one.seen))):
        return NO_PAIR  # equal episodes say nothing about the error of their mean
    returns = np.concatenate([sample.returns for sample in one.distinct.values()])
    if returns.size < 2:
        return NO_PAIR
    test = welch_of_moments(moments(np.sort(returns)), moments(np.sort(one.floor.units)))
    return t_interval(test.difference, test.se, test.df, confidence=context.plan.intervals.confidence)


def _equivalence(
    context: PlannedStudy, one: RunsAndReference, p: float, p_adjusted: float, margin: float
) -> Equivalence:
    units, values = np.sort(one.floor.units), np.sort([sample.mean for sample in one.distinct.values()])
    is_out_of_reach, runs_forbid = (
        sample.size > 1
        and equivalence_unreachable(
            margin=margin, sem=sem(sample), n=sample.size, alpha=context.plan.floor.alpha
        )
        for sample in (units, values)
    )
    return Equivalence(
        p=p,
        p_adjusted=p_adjusted,
        margin=margin,
        is_reachable=not is_out_of_reach,
        runs_allow=not runs_forbid,
    )


def _calls_at_looks(
    context: PlannedStudy, family: Sequence[RunsAndReference]
) -> tuple[tuple[ReferenceCall, ...], tuple[LookStep, ...]]:
    """The calls of one family with the runs of its last planned look, and where each comparison is in the looks.

    Runs count in the order of their seeds (agents in turn), so that which runs belong to a look does not depend on what
    they scored. Games that the plan names and that have no runs yet count in the family: Holm's procedure must not
    become stricter when they are added.
    """
    assert context.plan.floor.looks is not None
    waiting: list[list[float]] = [[] for _ in range(_without_runs(context, family))]
    decisions = next_runs(
        [*([sample.mean for sample in _by_seed(context, one.distinct)] for one in family), *waiting],
        [*(one.floor.units for one in family), *waiting],
        looks=context.plan.floor.looks,
        seen=[*(one.seen for one in family), *(None for _ in waiting)],
        alpha=context.plan.floor.alpha,
        margin=context.margin(),
    )[: len(family)]
    # Every comparison of the family has a run, so every decision has a call.
    calls = tuple(decision.found for decision in decisions if decision.found is not None)
    steps = tuple(
        LookStep(
            runs=len(one.distinct),
            runs_used=decision.n_used,
            advice=decision.advice,
            more_runs=decision.more_runs,
        )
        for one, decision in zip(family, decisions, strict=True)
    )
    return calls, steps


def _by_seed(context: PlannedStudy, runs: dict[RunName, RunSample]) -> list[RunSample]:
    order = {agent: at for at, agent in enumerate(context.study.agents)}
    names = sorted(runs, key=lambda name: (natural_key(name.seed), order.get(name.agent, 0), name.agent))
    return [runs[name] for name in names]


def _without_runs(context: PlannedStudy, family: Sequence[RunsAndReference]) -> int:
    """Comparisons that the plan names in this family and that have no runs yet."""
    mode, agent = family[0].condition.mode, family[0].labels["agent"]
    planned = {
        Condition(game, mode, budget, rule, level_set)
        for budget, games in context.plan.scope.games.items()
        for game in games
        for rule in context.plan.scope.rules
        for level_set in BOTH
    }
    missing = planned - {one.condition for one in family}
    return sum(floor_family(context, condition, agent) == family[0].family for condition in missing)


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
