"""What a study will cost: core seconds by kind of task, and bytes on disk.

Tasks estimate their seconds from the rates of one machine; another one is faster or slower, but the proportions are
similar.
"""

from __future__ import annotations

from dataclasses import dataclass

from gapfloor.study.graph import build_graph
from gapfloor.study.model import Study
from gapfloor.study.tasks import EvaluateTask, FloorTask, TrainTask, rates


@dataclass(frozen=True)
class CostEstimate:
    """A study's size."""

    n_runs: int
    n_cells: int
    n_addendum_cells: int
    n_floor_cells: int
    core_seconds: dict[str, float]
    """By kind of task."""
    longest_chain: float
    """Core seconds of the tasks that must follow each other, from the longest run to the report."""
    disk_bytes: int

    @property
    def total_core_seconds(self) -> float:
        """All tasks together."""
        return sum(self.core_seconds.values())

    def seconds_on(self, cores: int) -> float:
        """The least time on this many cores: a task uses one of them, so the longest chain is a lower limit."""
        return max(self.total_core_seconds / cores, self.longest_chain)


def estimate(study: Study) -> CostEstimate:
    """The size of `study`, done or not."""
    tasks = build_graph(study)
    seconds: dict[str, float] = {}
    ends: dict[str, float] = {}
    for task in tasks:
        own = task.seconds(study)
        seconds[task.kind] = seconds.get(task.kind, 0.0) + own
        ends[task.name] = own + max((ends[name] for name in task.needs), default=0.0)
    evaluations = [task for task in tasks if isinstance(task, EvaluateTask)]
    n_cells = sum(task.cells(study).total() for task in evaluations if task.rule in study.evaluation.rules)
    n_addendum = sum(task.cells(study).total() for task in evaluations if task.rule in study.addendum.rules)
    floors = [task for task in tasks if isinstance(task, FloorTask)]
    n_floors = sum(task.cells(study).total() + task.n_trials(study) for task in floors)
    runs = [task for task in tasks if isinstance(task, TrainTask)]
    sizes = rates()["bytes"]
    disk = (
        (n_cells + n_addendum + n_floors) * sizes["cell"]
        + len(runs) * sizes["checkpoint"]
        + sum(not run.checkpoints for run in runs) * sizes["resume"]
    )
    return CostEstimate(len(runs), n_cells, n_addendum, n_floors, seconds, max(ends.values()), int(disk))
