"""The effects and variances of a pilot's floor comparisons, from which the size of a study follows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.floor_rows import RunsAndReference, comparisons
from gapfloor.analysis.grouping import group
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.errors import UsageError
from gapfloor.plan.lock import load_plan
from gapfloor.plan.model import content_hash, paper_plan
from gapfloor.statistics.power import Effect


@dataclass(frozen=True)
class PilotComparison:
    """A floor comparison of the pilot, as an effect to be found again."""

    game: str
    budget: str
    rule: str
    level_set: str
    family_size: int
    """Comparisons of the pilot in the same family."""
    margin: float
    """How far from the floor still counts as equivalent."""
    effect: Effect
    """Over different runs: copies of a run tell nothing about the spread between runs."""
    n_runs: int
    n_floor: int


def read_pilot(
    source: Source, plan_path: Path | None = None, *, rule: str | None = None, level_set: str = "test"
) -> tuple[PilotComparison, ...]:
    """The pilot's comparisons under one rule (the plan's primary) on one level set."""
    plan = load_plan(plan_path).plan if plan_path is not None else paper_plan()
    rule = rule or plan.scope.primary_rule
    study = group(read_inputs(source), plan)
    context = PlannedStudy(study, plan, content_hash(plan), None)
    found = [
        _comparison(context, one, family_size=len(family))
        for family in comparisons(context)
        for one in family
        if (one.labels["rule"], one.labels["level_set"]) == (rule, level_set) and len(one.distinct) > 1
    ]
    if not found:
        raise UsageError(
            f"The pilot has no comparison under the rule '{rule}' on '{level_set}' levels with two runs and a floor."
        )
    return tuple(found)


def _comparison(context: PlannedStudy, one: RunsAndReference, *, family_size: int) -> PilotComparison:
    values, floor = np.sort([sample.mean for sample in one.distinct.values()]), np.sort(one.floor.units)
    return PilotComparison(
        **{name: one.labels[name] for name in ("game", "budget", "rule", "level_set")},
        family_size=family_size,
        margin=context.margin(one.floor, *one.runs.values()).at(float(floor.mean())),
        effect=Effect(
            delta=float(values.mean() - floor.mean()),
            run_sd=float(values.std(ddof=1)),
            floor_sd=float(floor.std(ddof=1)),
        ),
        n_runs=values.size,
        n_floor=floor.size,
    )
