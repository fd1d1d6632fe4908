import numpy as np
import pytest

from gapfloor.errors import UsageError
from gapfloor.levels.schedule import LevelSet, draw_levels, drawn_schedule

pytestmark = pytest.mark.fast
TRAIN = LevelSet(0, 200)


def test_every_slot_contributes_equally_many_episodes_after_its_burn_in():
    schedule = drawn_schedule(TRAIN, draw=0, slots=16, episodes=128, burn_in=1)
    assert len(schedule) == 128
    for slot in range(16):
        assert schedule.index[schedule.slot == slot].tolist() == list(range(1, 9))


def test_the_schedule_holds_the_drawn_levels_without_the_burn_in():
    schedule = drawn_schedule(TRAIN, draw=3, slots=4, episodes=8, burn_in=2)
    drawn = draw_levels(TRAIN, draw=3, slots=4, episodes=4)
    assert schedule.level_seed.reshape(4, 2).tolist() == drawn[:, 2:].tolist()


def test_a_slots_levels_do_not_depend_on_how_many_slots_there_are():
    few = draw_levels(TRAIN, draw=5, slots=3, episodes=6)
    many = draw_levels(TRAIN, draw=5, slots=64, episodes=6)
    assert (many[:3] == few).all()


def test_another_draw_gives_other_levels():
    assert (
        draw_levels(TRAIN, draw=0, slots=4, episodes=8) != draw_levels(TRAIN, draw=1, slots=4, episodes=8)
    ).any()


def test_drawn_levels_are_uniform_over_the_set():
    drawn = draw_levels(LevelSet(1000, 1010), draw=0, slots=100, episodes=200)
    counts = np.bincount(drawn.ravel() - 1000, minlength=10)
    # 20,000 draws over 10 levels: sd of a count is 42; five of them is generous.
    assert np.abs(counts - 2000).max() < 5 * 42.4


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"slots": 16, "episodes": 100, "burn_in": 1}, "use a multiple, e.g. 96 or 112"),
        ({"slots": 16, "episodes": 8, "burn_in": 1}, "use a multiple, e.g. 16"),
        ({"slots": 0, "episodes": 8, "burn_in": 1}, "slots is 0"),
        ({"slots": 4, "episodes": 0, "burn_in": 1}, "episodes is 0"),
        ({"slots": 4, "episodes": 8, "burn_in": -1}, "burn_in is -1"),
    ],
)
def test_counts_that_cannot_be_balanced_are_refused(counts, words):
    with pytest.raises(UsageError, match=words):
        drawn_schedule(TRAIN, draw=0, **counts)


@pytest.mark.parametrize("draw", [-1, 2**31 - 1])
def test_a_draw_seed_outside_the_engines_range_is_refused(draw):
    with pytest.raises(UsageError, match="out of range"):
        draw_levels(TRAIN, draw=draw, slots=1, episodes=1)
