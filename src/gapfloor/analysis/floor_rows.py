"""Rows about the floor: the floors themselves, and runs compared with them by one method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.grouping import RunName, RunSample
from gapfloor.analysis.look_rows import calls_at_looks
from gapfloor.analysis.planned_study import PlannedStudy, floor_family
from gapfloor.analysis.rows import (
    CallCount,
    ComparisonRow,
    Decision,
    Equivalence,
    LookStep,
    ReturnRow,
)
from gapfloor.plan.model import Method
from gapfloor.statistics.clustered import clustered_sem
from gapfloor.statistics.conventions import NAN, NO_PAIR, THESE_LEVELS, THESE_RUNS, finite_sample, sem
from gapfloor.statistics.detectable import equivalence_unreachable
from gapfloor.statistics.distinct import distinct
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.families import call_family, holm
from gapfloor.statistics.floor import compare_to_floor
from gapfloor.statistics.reference_calls import ReferenceCall, call_reference_family, compare_to_reference
from gapfloor.statistics.welch import moments, t_interval, welch_of_moments
from gapfloor.text_tables import counted


def floor_rows(context: PlannedStudy) -> tuple[ReturnRow, ...]:
    """Every reference on every level set."""
    study, rows = context.study, []
    for place, sample in study.references.items():
        game, mode, budget, reference, level_set = place
        returns = finite_sample(sample.returns, "floor returns")
        row = context.row(
            "floor", game=game, mode=mode, budget=budget, n=returns.size, rules=(reference,),
            level_sets=(level_set,),
        )  # fmt: skip
        rows.append(
            ReturnRow(
                **row,
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
    order = {name: i for i, name in enumerate(study.games)}
    return tuple(
        sorted(
            rows, key=lambda r: (r.reference != FLOOR_RULE, r.reference, order[r.game], r.budget, r.level_set)
        )
    )


@dataclass(frozen=True)
class RunsAndReference:
    """Runs and the reference that they are compared with, before anything is tested."""

    labels: dict[str, Any]
    """The labels of the row."""
    family: str
    runs: dict[RunName, RunSample]
    distinct: dict[RunName, RunSample]
    """The runs without copies."""
    floor: RunSample

    @property
    def place(self) -> tuple[str, str, str]:
        """Game, mode and budget."""
        return self.labels["game"], self.labels["mode"], self.labels["budget"]


def comparisons(
    context: PlannedStudy, *, agent: str | None = None, reference: str | None = None
) -> list[list[RunsAndReference]]:
    """Runs (of one agent, or of all) with a reference (the plan's), by families of tests."""
    reference = context.plan.floor.reference if reference is None else reference
    families: dict[tuple[str, str], list[RunsAndReference]] = {}
    for place in context.study.places():
        for rule in context.study.rules:
            for level_set in context.study.level_sets:
                runs = context.study.runs(*place, rule, level_set)
                runs = {name: s for name, s in runs.items() if agent is None or name.agent == agent}
                floor = context.study.floor(*place, level_set, reference=reference)
                if runs and floor is not None and floor.returns.size > 1:
                    found = _comparison(context, place, rule, level_set, runs, floor, agent, reference)
                    families.setdefault((found.family, place[1]), []).append(found)
    return list(families.values())


def _comparison(
    context: PlannedStudy,
    place: tuple[str, str, str],
    rule: str,
    level_set: str,
    runs: dict[RunName, RunSample],
    floor: RunSample,
    agent: str | None,
    reference: str,
) -> RunsAndReference:
    game, mode, budget = place
    unnamed = _unnamed(context, agent, reference)
    row = context.row(
        "floor comparison", game=game, mode=mode, budget=budget, n=len(runs), rules=(rule,),
        level_sets=(level_set,), names=(agent or "", reference), unnamed=unnamed,
    )  # fmt: skip
    return RunsAndReference(
        labels={**row, "agent": agent, "rule": rule, "level_set": level_set, "reference": reference},
        family=floor_family(context, (game, budget, rule, level_set), agent=agent, unnamed=unnamed),
        runs=runs,
        distinct=context.distinct(runs, game=game, mode=mode, budget=budget),
        floor=floor,
    )


def _unnamed(context: PlannedStudy, agent: str | None, reference: str) -> str:
    """Why no plan names this comparison, or nothing."""
    if reference != context.plan.floor.reference:
        return f"the plan does not name comparisons with the reference '{reference}'"
    if agent is not None:
        return "the plan does not name comparisons of single agents"
    if context.plan.floor.looks is not None and not context.plan.scope.games:
        return "the plan has looks but does not name its games (scope.games), so the family is not fixed"
    return ""


def comparison_rows(
    context: PlannedStudy, families: Sequence[Sequence[RunsAndReference]], *, method: Method | None = None
) -> tuple[ComparisonRow, ...]:
    """Runs against a reference, with the calls of one method (the plan's)."""
    make = _recommended_rows if (method or context.floor_method) == "recommended" else _paper_rows
    rows = [row for family in families for row in make(context, family)]
    order = {place: i for i, place in enumerate(context.study.places())}
    study = context.study
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                order[row.game, row.mode, row.budget],
                study.rules.index(row.rule),
                study.level_sets.index(row.level_set),
            ),
        )
    )


def _paper_rows(context: PlannedStudy, family: Sequence[RunsAndReference]) -> list[ComparisonRow]:
    """The paper's tests: Welch of run values against episodes, Holm, TOST; percentile bootstrap intervals."""
    alpha = context.plan.floor.alpha
    tests = [
        compare_to_floor(
            [sample.mean for sample in one.runs.values()],
            one.floor.units,
            rng=context.rng(one.labels["seed"]),
            margin=context.margin,
            **context.resampling,
        )
        for one in family
    ]
    rows = []
    equivalent = holm([test.p_tost for test in tests])
    for one, test, found, p_tost in zip(
        family, tests, call_family(tests, alpha=alpha), equivalent, strict=True
    ):
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
                    reason="" if is_tested else _too_few(one),
                ),
                equivalence=Equivalence(
                    p=test.p_tost, p_adjusted=float(p_tost), margin=test.margin,
                    is_reachable=_is_reachable(context, one, test.margin),
                ),
                runs_above=test.runs_above,
                n_copies=len(one.runs) - len(one.distinct),
            )
        )  # fmt: skip
    return rows


def _recommended_rows(context: PlannedStudy, family: Sequence[RunsAndReference]) -> list[ComparisonRow]:
    """The recommended tests (docs/claims.md), over different runs; each interval agrees with its call."""
    alpha = context.plan.floor.alpha
    tests = [
        compare_to_reference(
            [sample.mean for sample in one.distinct.values()],
            one.floor.units,
            margin=context.margin,
            least_runs=context.plan.least_runs,
            is_called_later=True,
        )
        for one in family
    ]
    calls = call_reference_family(tests, alpha=alpha)
    steps: Sequence[LookStep | None] = [None] * len(family)
    if context.plan.floor.looks is not None and _is_planned(context, family):
        calls, steps = calls_at_looks(context, family, tests)
    return [
        _recommended_row(context, one, call, step)
        for one, call, step in zip(family, calls, steps, strict=True)
    ]


def _is_planned(context: PlannedStudy, family: Sequence[RunsAndReference]) -> bool:
    return all(
        one.labels["agent"] is None and one.labels["reference"] == context.plan.floor.reference
        for one in family
    )


def _recommended_row(
    context: PlannedStudy, one: RunsAndReference, call: ReferenceCall, step: LookStep | None
) -> ComparisonRow:
    test = call.test
    is_tested = call.call != "not tested"
    low, high = call.interval if is_tested else _episode_interval(context, one)
    widened = (test.widened.lower is not None, test.widened.upper is not None)
    words: dict[tuple[bool, bool], Literal["", "upper", "lower", "both"]] = {
        (False, False): "", (True, False): "lower", (False, True): "upper", (True, True): "both",
    }  # fmt: skip
    return ComparisonRow(
        **{**one.labels, "n": test.n},
        mean=test.mean,
        sem=float(np.sqrt(test.parts[0].variance)),
        floor=test.reference,
        floor_sem=sem(np.sort(one.floor.units)),
        floor_n=test.reference_n,
        delta=Estimate(
            value=test.delta,
            se=test.se,
            low=low,
            high=high,
            confidence=call.confidence if is_tested else context.plan.intervals.confidence,
            p=test.p,
            estimand=THESE_LEVELS if is_tested else THESE_RUNS,
            method="recommended",
        ),
        decision=Decision(
            call=call.call,
            p_adjusted=call.p_holm,
            family=one.family,
            family_size=call.family_size,
            doubt=call.doubt,
            reason=_remark(call) if is_tested else _not_yet(one, step),
        ),
        equivalence=Equivalence(
            p=test.p_tost,
            p_adjusted=call.p_tost_holm,
            margin=test.margin,
            is_reachable=_is_reachable(context, one, test.margin),
        ),
        runs_above=sum(value > test.reference for value in test.run_values),
        n_copies=len(one.runs) - len(one.distinct),
        widened=words[widened] if is_tested else "",
        look=step,
    )


def _remark(call: ReferenceCall) -> str:
    is_of_game_only = call.call == "equivalent" and not call.equivalent_in_family
    return "not after correction over games" if is_of_game_only else ""


def _episode_interval(context: PlannedStudy, one: RunsAndReference) -> tuple[float, float]:
    """Student's interval of the difference over episodes: these runs on new episodes of these levels."""
    if one.floor.is_census or any(sample.is_census for sample in one.distinct.values()):
        return NO_PAIR  # in a census episodes of one level are not independent
    returns = np.concatenate([sample.returns for sample in one.distinct.values()])
    if returns.size < 2:
        return NO_PAIR
    test = welch_of_moments(moments(np.sort(returns)), moments(np.sort(one.floor.units)))
    return t_interval(test.difference, test.se, test.df, confidence=context.plan.intervals.confidence)


def _is_reachable(context: PlannedStudy, one: RunsAndReference, margin: float) -> bool:
    units = np.sort(one.floor.units)
    return not equivalence_unreachable(
        margin=margin, floor_sem=sem(units), floor_n=units.size, alpha=context.plan.floor.alpha
    )


def _too_few(one: RunsAndReference) -> str:
    """How many runs there are, and how many were copies."""
    copies = len(one.runs) - len(one.distinct)
    left_out = f", {counted(copies, 'copy', 'copies')} left out" if copies else ""
    return f"{counted(len(one.distinct), 'run')}{left_out}"


def _not_yet(one: RunsAndReference, step: LookStep | None) -> str:
    return _too_few(one) if step is None else f"{counted(step.more_runs, 'run')} to add before the first look"


def call_counts(rows: Iterable[ComparisonRow]) -> tuple[CallCount, ...]:
    """How many games got which call, per budget, rule and level set."""
    groups: dict[tuple[str, str, str], list[ComparisonRow]] = {}
    for row in rows:
        groups.setdefault((row.budget, row.rule, row.level_set), []).append(row)
    words = ("above", "below", "equivalent", "not distinguishable", "not tested")
    return tuple(
        CallCount(
            budget=budget,
            rule=rule,
            level_set=level_set,
            games=len(members),
            **{word.replace(" ", "_"): sum(row.call == word for row in members) for word in words},
            z_not_above=sum(not row.z > 2 for row in members),
        )
        for (budget, rule, level_set), members in groups.items()
    )
