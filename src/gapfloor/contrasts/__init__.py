"""What is learned by measuring the same agent twice, or two agents, on the same schedule.

`sweep` lies between greedy and sampled, `over_training` between a run's checkpoints, `compare` between two agents.
"""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "Comparison": "comparing",
    "CrossedDifference": "crossed",
    "LevelContrast": "by_level",
    "OverTraining": "courses",
    "RankCorrelation": "ranks",
    "Sweep": "sweeping",
    "compare": "comparing",
    "crossed_difference": "crossed",
    "over_training": "courses",
    "pair_by_level": "by_level",
    "rank_correlation": "ranks",
    "sweep": "sweeping",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
