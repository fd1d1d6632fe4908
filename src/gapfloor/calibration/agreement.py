"""Whether classes measured on random play also hold in the states that a policy visits (the paper leaves this open)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from gapfloor.calibration.class_measurement import measure_classes
from gapfloor.calibration.classes import ActionClasses, CalibrationSettings
from gapfloor.engines.engine import EngineSpec
from gapfloor.policies.load import PolicySource


@dataclass(frozen=True)
class PairDifference:
    """Two actions that are the same on one play's states and not on the other's."""

    first: int
    second: int
    differ_random: int
    """States of random play in which their outcomes differ; 0 where random play merges them."""
    differ_visited: int
    """States that the policy visits in which their outcomes differ."""


@dataclass(frozen=True)
class PlayComparison:
    """The classes on random play, on a policy's own states, and the pairs of actions on which they differ."""

    random: ActionClasses
    visited: ActionClasses
    pairs: tuple[PairDifference, ...]


def compare_play(
    spec: EngineSpec, settings: CalibrationSettings, *, source: PolicySource, workers: int | None = None
) -> PlayComparison:
    """Measure the classes on random play and on a policy's own states, with the same settings."""
    random = measure_classes(spec, settings, workers=workers)
    visited = measure_classes(spec, settings, source=source, workers=workers)
    return PlayComparison(random, visited, differing_pairs(random, visited))


def differing_pairs(random: ActionClasses, visited: ActionClasses) -> tuple[PairDifference, ...]:
    """The pairs of actions that exactly one of the two partitions keeps together."""
    found = []
    for first, second in combinations(range(random.partition.n_actions), 2):
        on_random = random.settings.states - random.equal_states[first][second]
        on_visited = visited.settings.states - visited.equal_states[first][second]
        if (on_random == 0) != (on_visited == 0):
            found.append(PairDifference(first, second, on_random, on_visited))
    return tuple(found)
