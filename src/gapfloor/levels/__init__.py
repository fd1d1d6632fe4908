"""Level sets, seeded draws of levels, and the schedules made of them."""

from gapfloor.levels.schedule import (
    LevelSet,
    Schedule,
    census_schedule,
    check_disjoint,
    draw_levels,
    drawn_schedule,
)

__all__ = [
    "LevelSet",
    "Schedule",
    "census_schedule",
    "check_disjoint",
    "draw_levels",
    "drawn_schedule",
]
