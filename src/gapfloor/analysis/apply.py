"""`analyse`: episodes and a plan in, calls and everything around them out."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from gapfloor.analysis.checks import departures, find_problems, refuse_unknown_names
from gapfloor.analysis.compared import call_counts, called_rows, comparisons, gap_comparisons, stricter_rows
from gapfloor.analysis.difference_rows import agent_difference_rows, agent_rows, pair_rows
from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.planned_study import (
    PlannedStudy,
    floor_rows,
    normalised_rows,
    other_method,
    resolve_plan,
)
from gapfloor.analysis.results import (
    AddendumUsed,
    AnalysisResults,
    OtherMethod,
    PlanUsed,
    Problem,
    SourceSummary,
)
from gapfloor.analysis.screen_rows import (
    agent_tier,
    disagreement_rows,
    read_cells,
    screen_rows,
    screen_summaries,
)
from gapfloor.analysis.sensitivity_rows import sensitivity_rows
from gapfloor.errors import CheckFailedError
from gapfloor.machine import one_blas_thread
from gapfloor.plan.lock import LockedPlan, counted_by_time
from gapfloor.plan.model import Plan
from gapfloor.tables.cells import counted

_SHOWN = 20


@one_blas_thread()
def analyse(
    source: Source, plan: str | Path | Plan | LockedPlan | None = None, *, cells: Any = None
) -> AnalysisResults:
    """Apply a plan's tests to episodes.

    Args:
        source: a store's folder, a .csv or .parquet file of episodes, a `Store`, or a pyarrow table.
        plan: a plan file (its lock is read from its folder), a plan, or None for the built-in plan of the paper with
            the recommended calls, by which every result is exploratory.
        cells: cell records (a pyarrow table) for the entropy screen; a store brings its own.

    Raises:
        UsageError: the source or the plan cannot be read, or an episode is not finite or occurs twice.
        CheckFailedError: the plan was changed after locking, or one of its stop conditions is met.
    """
    locked = resolve_plan(plan)
    content = locked.plan if locked is not None else Plan.paper()
    inputs = read_inputs(source, cells=cells)
    if locked is not None:
        locked = counted_by_time(locked, inputs.times)
    study = group(inputs, content)
    problems = find_problems(study, inputs, content)
    if locked is not None:
        refuse_unknown_names(study, locked)
        problems = (*problems, *departures(study, content))
    if locked is not None and locked.lock is not None:
        _stop(content, problems)
    # A plan without the setting pools, as the paper does. Where no plan is given, agents are never pooled.
    is_pooled = locked is not None if content.agents.pooled is None else content.agents.pooled
    context = PlannedStudy(study, content, locked, pools=(None,) if is_pooled else study.agents)
    measured = read_cells(inputs.cells, context)
    compared, compared_gaps = comparisons(context), gap_comparisons(context)
    against_floor, gaps = called_rows(compared), called_rows(compared_gaps)
    screen = screen_rows(context, measured, against_floor, gaps)
    stricter = sorted({where.rule for where in study.references} - {content.floor.reference})
    return AnalysisResults(
        plan=plan_used(context, n_timed=len(inputs.stored_at)),
        source=SourceSummary(
            n_episodes=inputs.n_rows,
            n_cells=study.n_cells,
            n_runs=len({(*place, run) for (*place, _, _), runs in study.policies.items() for run in runs}),
            n_floor_episodes=sum(
                sample.returns.size for where, sample in study.references.items() if where.rule == FLOOR_RULE
            ),
            **study.labels,
            has_level_seeds=bool((inputs.level_seed >= 0).all()),
            has_cell_records=inputs.cells is not None,
            extra_columns=inputs.extra_columns,
        ),
        floors=floor_rows(context),
        floor_comparisons=against_floor,
        agent_floor_comparisons=called_rows(comparisons(context, agents=study.agents)),
        reference_comparisons=stricter_rows(context, stricter),
        gaps=gaps,
        pairs=pair_rows(context),
        encoders=agent_difference_rows(context),
        agents=agent_rows(context, lambda place, agent: agent_tier(context, measured, place, agent)),
        screen=screen,
        disagreements=disagreement_rows(context, measured),
        normalised=normalised_rows(context),
        call_counts=call_counts(against_floor),
        sensitivity=sensitivity_rows(context, [*compared, *compared_gaps], [*against_floor, *gaps]),
        other_method=OtherMethod(
            method=(other := other_method(context.method)),
            floor_comparisons=called_rows(compared, method=other),
            gaps=called_rows(compared_gaps, method=other),
        ),
        screen_summaries=screen_summaries(screen),
        problems=problems,
    )


def _stop(plan: Plan, problems: tuple[Problem, ...]) -> None:
    """End the analysis if the plan says so; a value that is not finite has been refused when read."""
    stops = {
        "replay": ("a replay does not give the recorded return", "Find out why"),
        "missing": ("a cell is missing", "Measure what is missing"),
        "no floor": ("a floor is missing", "Measure it (gapfloor floor)"),
        "levels": ("levels are not those that it names", "Measure on the plan's levels"),
    }
    ignored = {"replay": not plan.stop.replay_check_fails, "missing": not plan.stop.cell_missing}
    for kind, (condition, remedy) in stops.items():
        reasons = [problem for problem in problems if problem.kind == kind and not ignored.get(kind)]
        if reasons:
            listed = "\n".join(f"  {problem.where}: {problem.what}" for problem in reasons[:_SHOWN])
            more = f"\n  and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
            raise CheckFailedError(
                f"The plan stops the analysis when {condition}; that happened {counted(len(reasons), 'time')}:\n"
                f"{listed}{more}\n"
                f"{remedy}, or analyse without this plan (every result is then exploratory)."
            )


def plan_used(context: PlannedStudy, *, n_timed: int = 0) -> PlanUsed:
    """The plan as it was used; `n_timed` counts the cells of which it is known when they were written."""
    plan, locked = context.plan, context.locked
    lock = locked.lock if locked is not None else None
    fixed: dict[str, Any] = {}
    if lock is not None:
        fixed = {
            name: getattr(lock.plan, name)
            for name in ("status", "locked_at", "cells_seen", "seen_in", "commit")
        }
        fixed |= {"earlier_locks": lock.plan.earlier, "leaves_open": plan.leaves_open}
        fixed["shown"] = "no cell had been seen by its lock; when these data were made is not recorded"
        if lock.plan.cells_seen:
            fixed["shown"] = f"locked when {counted(lock.plan.cells_seen, 'cell')} had been seen"
        elif 0 < context.study.n_cells <= n_timed:
            fixed["shown"] = "by the times in its log, locked before any cell of this store"
    return PlanUsed(
        name=plan.name if locked is not None else f"{context.method} (built in)",
        hash=context.plan_hash,
        alpha=plan.floor.alpha,
        confidence=plan.intervals.confidence,
        resamples=plan.intervals.resamples,
        seed=plan.intervals.seed,
        primary_rule=plan.scope.primary_rule,
        cuts=plan.screen.cuts,
        reference=plan.floor.reference,
        method=context.method,
        least_runs=plan.least_runs,
        pooled=context.pools == (None,),
        addenda=tuple(
            AddendumUsed(**{each.name: getattr(text, each.name) for each in fields(AddendumUsed)})
            for _, text in (locked.addenda if locked is not None else ())
        ),
        **fixed,
    )
