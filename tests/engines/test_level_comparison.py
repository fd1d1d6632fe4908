"""Levels of engines other than ProcGen, compared by what they show."""

from __future__ import annotations

import pytest

from gapfloor.engines.level_comparison import compare_levels
from gapfloor.engines.registry import make_spec
from gapfloor.errors import UsageError
from gapfloor.levels.schedule import LevelSet

TRAIN, TEST = LevelSet(0, 12), LevelSet(1000, 1006)


def test_seeds_of_a_level_without_chance_are_all_the_same_level() -> None:
    found = compare_levels(make_spec("gym:MiniGrid-Empty-5x5-v0"), train=TRAIN, test=TEST)
    assert found.leaked == tuple(range(1000, 1006))
    assert found.twins[1000] == tuple(range(12))
    assert found.distinct_train == 1
    assert found.confirmed_by_actions == 6


def test_the_picture_tells_levels_apart_whose_first_observations_agree() -> None:
    train, test = LevelSet(0, 60), LevelSet(1000, 1020)
    found = compare_levels(make_spec("gym:MiniGrid-FourRooms-v0"), train=train, test=test)
    assert found.first_screen > 0
    assert found.first_frame == 0
    assert found.leaked == ()
    assert found.compared == "first observation and picture: no two alike"


def test_seeds_that_start_alike_and_differ_later_are_not_the_same_level() -> None:
    found = compare_levels(make_spec("gym:FrozenLake-v1"), train=LevelSet(0, 4), test=LevelSet(9, 11))
    assert found.first_frame == 2
    assert len(found.leaked) < 2 or found.later == ""
    assert found.distinct_train > 1


def test_overlapping_sets_are_refused() -> None:
    with pytest.raises(UsageError):
        compare_levels(make_spec("gym:CartPole-v1"), train=TRAIN, test=LevelSet(5, 20))
