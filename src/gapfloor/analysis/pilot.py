"""The effects and variances of a pilot's floor comparisons, from which the size of a study follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from gapfloor.analysis.apply import analyse
from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.floor_results import FloorComparisonResult
from gapfloor.analysis.grouping import group
from gapfloor.errors import UsageError
from gapfloor.plan.lock import load_plan
from gapfloor.plan.model import Plan, paper_plan
from gapfloor.statistics.clustered import crossed_mean, level_matrix
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.designs import PilotEstimate
from gapfloor.statistics.power import Effect


@dataclass(frozen=True)
class PilotComparison:
    """A floor comparison of the pilot, as an effect to be found again."""

    row: FloorComparisonResult
    estimate: PilotEstimate
    """Over different runs: copies of a run tell nothing about the spread between runs."""
    generator: Effect | None
    """The same delta with run, level and residual variance; None without level seeds."""
    n_levels: int

    @property
    def effect(self) -> Effect:
        """The estimates taken as true."""
        return self.estimate.effect


def read_pilot(
    source: Source, plan_path: Path | None = None, *, rule: str | None = None, level_set: str = "test"
) -> tuple[PilotComparison, ...]:
    """The pilot's comparisons under one rule (the plan's primary) on one level set."""
    plan: Plan = load_plan(plan_path).plan if plan_path is not None else paper_plan()
    rule = rule or plan.scope.primary_rule
    inputs = read_inputs(source)
    study = group(inputs, plan)
    found = []
    for row in analyse(inputs, plan).floor_comparisons:
        assert row.recommended is not None
        test = row.recommended.test
        if (row.rule, row.level_set) != (rule, level_set) or test.n < 2:
            continue
        estimate = PilotEstimate(
            delta=test.delta,
            run_sd=math.sqrt(test.parts[0].variance * test.n),
            n_runs=test.n,
            floor_sd=math.sqrt(test.parts[-1].variance * test.reference_n),
            n_floor=test.reference_n,
        )
        runs = study.runs(row.game, row.mode, row.budget, rule, level_set)
        floor = study.floor(row.game, row.mode, row.budget, level_set)
        assert floor is not None
        pairs = [(sample.returns, sample.levels) for _, sample in sorted(runs.items())]
        matrix = level_matrix(pairs, floor=(floor.returns, floor.levels))
        generator, n_levels = None, 0
        if matrix is not None and row.n > 1:
            crossed = crossed_mean(matrix)
            n_levels = crossed.n_levels
            generator = Effect(
                test.delta,
                run_sd=_sd(crossed.v_run - crossed.v_residual, row.n),
                floor_sd=NAN,
                level_sd=_sd(crossed.v_level - crossed.v_residual, n_levels),
                residual_sd=_sd(crossed.v_residual, row.n * n_levels),
            )
        found.append(PilotComparison(row, estimate, generator, n_levels))
    if not found:
        raise UsageError(
            f"The pilot has no comparison under the rule '{rule}' on '{level_set}' levels with two runs and a floor."
        )
    return tuple(found)


def _sd(variance: float, n: int) -> float:
    return math.sqrt(max(variance, 0.0) * n)
