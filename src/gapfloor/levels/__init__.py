"""Level sets, seeded draws of levels, and the schedules made of them."""

from gapfloor.levels.level_set import LevelSet, check_disjoint
from gapfloor.levels.schedule import Schedule, census_schedule, draw_levels, drawn_schedule

__all__ = [
    "LevelSet",
    "Schedule",
    "census_schedule",
    "check_disjoint",
    "draw_levels",
    "drawn_schedule",
]
