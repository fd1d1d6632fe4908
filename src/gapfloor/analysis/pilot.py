"""The effects and variances of a pilot's floor comparisons, from which the size of a study follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from gapfloor.analysis.apply import analyse
from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.floor_results import FloorComparisonResult
from gapfloor.errors import UsageError
from gapfloor.plan.lock import load_plan
from gapfloor.plan.model import Plan, paper_plan
from gapfloor.statistics.power import Effect


@dataclass(frozen=True)
class PilotComparison:
    """A floor comparison of the pilot, as an effect to be found again."""

    row: FloorComparisonResult
    effect: Effect
    """Over different runs: copies of a run tell nothing about the spread between runs."""
    n_runs: int
    n_floor: int


def read_pilot(
    source: Source, plan_path: Path | None = None, *, rule: str | None = None, level_set: str = "test"
) -> tuple[PilotComparison, ...]:
    """The pilot's comparisons under one rule (the plan's primary) on one level set."""
    plan: Plan = load_plan(plan_path).plan if plan_path is not None else paper_plan()
    rule = rule or plan.scope.primary_rule
    found = []
    for row in analyse(read_inputs(source), plan).floor_comparisons:
        assert row.recommended is not None
        test = row.recommended.test
        if (row.rule, row.level_set) != (rule, level_set) or test.n < 2:
            continue
        effect = Effect(
            delta=test.delta,
            run_sd=math.sqrt(test.parts[0].variance * test.n),
            floor_sd=math.sqrt(test.parts[-1].variance * test.reference_n),
        )
        found.append(PilotComparison(row, effect, test.n, test.reference_n))
    if not found:
        raise UsageError(
            f"The pilot has no comparison under the rule '{rule}' on '{level_set}' levels with two runs and a floor."
        )
    return tuple(found)
