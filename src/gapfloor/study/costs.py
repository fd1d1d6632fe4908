"""What a study will cost: core seconds per task, and bytes on disk, from measured rates.

The rates ship with the package (`data/rates.json`, with the commands that measured them) and are those of one machine;
on another one they differ, but their proportions are similar.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from dataclasses import dataclass
from typing import Any

from gapfloor.play.references import recorded_name
from gapfloor.rules import rule_kind
from gapfloor.study.graph import Task, build_graph
from gapfloor.study.model import Study


@dataclass(frozen=True)
class Estimate:
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


def estimate(study: Study) -> Estimate:
    """The size of `study`, done or not."""
    tasks = build_graph(study)
    level_sets = len(study.protocol(study.games[0]).level_sets)
    a_rule = level_sets * len(study.protocol(study.games[0]).draws)
    n_runs = len(study.training_specs())
    seconds: dict[str, float] = {}
    ends: dict[str, float] = {}
    for task in tasks:
        own = task_seconds(study, task)
        seconds[task.kind] = seconds.get(task.kind, 0.0) + own
        ends[task.name] = own + max((ends[name] for name in task.needs), default=0.0)
    n_cells = n_runs * a_rule * len(study.evaluation.rules)
    n_addendum = n_runs * a_rule * len(study.addendum.rules)
    networks = sum(recorded_name(name)[1] for game in study.games for name in study.references_of(game))
    n_floors = networks * a_rule
    sizes = rates()["bytes"]
    trained = sum(1 for group, _ in study.training_specs() if not group.checkpoints)
    disk = (
        (n_cells + n_addendum + n_floors) * sizes["cell"]
        + n_runs * sizes["checkpoint"]
        + trained * sizes["resume"]
    )
    return Estimate(n_runs, n_cells, n_addendum, n_floors, seconds, max(ends.values()), int(disk))


def task_seconds(study: Study, task: Task) -> float:
    """Seconds of one core that a task is expected to take."""
    known = rates()
    settings = study.evaluation
    if task.kind == "train":
        group, spec = next(pair for pair in study.training_specs() if pair[1].run == task.run)
        per_second = known["train_steps_per_core_second"].get(
            spec.encoder, known["train_steps_per_core_second"]["impala"]
        )
        return 1.0 if group.checkpoints else spec.steps / per_second
    steps = known["floor_steps_per_episode"].get(task.game, known["floor_steps_per_episode"]["other"])
    protocol = study.protocol(task.game or study.games[0])
    sets = [levels for role, levels in protocol.level_sets if task.level_set in ("", role)]
    a_draw = sum(protocol.design.content(levels)["episodes"] for levels in sets) / max(1, len(sets))
    episodes = a_draw * len(protocol.draws)
    if task.kind == "floor":
        return float(episodes * 2 * steps / known["floor_steps_per_core_second"])
    if task.kind == "evaluate":
        frames = episodes * steps
        if rule_kind(task.rule).is_deterministic:
            levels = dict(study.protocol(task.game).level_sets)[task.level_set].n  # type: ignore[index]
            played = levels * (1 - (1 - 1 / levels) ** episodes)
            return float(played * steps / known["inference_frames_per_core_second"])
        probes = len(protocol.draws) * settings.probe * known["probe_seconds_per_state"]
        return float(frames / known["inference_frames_per_core_second"] + probes)
    return float(known["seconds"][task.kind])


@functools.cache
def rates() -> dict[str, Any]:
    """The measured rates."""
    text = importlib.resources.files("gapfloor").joinpath("data/rates.json").read_text()
    document: dict[str, Any] = json.loads(text)
    return document
