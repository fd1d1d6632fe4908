"""Recording play on the real engine: geometry, steps since the start, levels, and repeatability."""

import numpy as np
import pytest

import small_policies
from gapfloor.engines.procgen import make_spec
from gapfloor.errors import PolicyError, UsageError
from gapfloor.levels.schedule import LevelSet, draw_levels
from gapfloor.policies.load import PolicySource
from gapfloor.representation import Geometry, encode, linear_cka, record_play

TRAIN = LevelSet(0, 200)


def record(geometry="8x12", *, game="fruitbot", draw=3, policy=None, **changes):
    arguments = {"levels": TRAIN, "fingerprint": "one", **changes}
    policy = policy or small_policies.LinearPolicy()
    return record_play(policy, make_spec(game), geometry=Geometry.parse(geometry), draw=draw, **arguments)


def test_every_slot_starts_an_episode_on_the_draw_s_levels():
    recording = record()
    levels = recording.level_seed.reshape(12, 8)
    assert recording.observations.shape == (96, 64, 64, 3)
    assert levels[0].tolist() == draw_levels(TRAIN, draw=3, slots=8, episodes=1)[:, 0].tolist()
    assert recording.since_start.reshape(12, 8)[:, 0].tolist() == list(range(12))


def test_steps_count_from_the_start_of_each_episode():
    """Long enough for episodes to end: there the count falls to zero and the draw's next level begins."""
    recording = record("4x400", game="starpilot")
    ages, levels = recording.since_start.reshape(400, 4), recording.level_seed.reshape(400, 4)
    ends = np.argwhere(np.diff(ages, axis=0) != 1)
    assert len(ends)
    drawn = draw_levels(TRAIN, draw=3, slots=4, episodes=20)
    for slot in range(4):
        starts = np.flatnonzero(ages[:, slot] == 0)
        assert starts[0] == 0
        assert levels[starts, slot].tolist() == drawn[slot, : len(starts)].tolist()
        assert np.array_equal(ages[:, slot], np.arange(400) - np.repeat(starts, np.diff([*starts, 400])))


def test_another_geometry_changes_nothing_but_which_steps_of_which_slots_are_taken():
    wide, long = record("20x6"), record("6x20")
    grid, other = wide.observations.reshape(6, 20, -1), long.observations.reshape(20, 6, -1)
    assert np.array_equal(grid[:, :6], other[:6])


def test_the_same_recording_is_the_same_and_another_draw_policy_or_level_set_is_another():
    first = record()
    assert np.array_equal(record().observations, first.observations)
    for changes in ({"draw": 4}, {"fingerprint": "two"}, {"levels": LevelSet(1000, 1100)}):
        assert not np.array_equal(record(**changes).observations, first.observations)


def test_two_encoders_are_compared_on_one_recording(runs):
    one, other = (PolicySource(str(run), backend="torch").load() for run in runs)
    seen = record("4x4", policy=one).observations
    assert linear_cka(encode(one, seen), encode(one, seen)) == pytest.approx(1)
    assert linear_cka(encode(one, seen), encode(other, seen)) < 1


def test_policies_with_state_are_refused():
    with pytest.raises(PolicyError, match="keeps a state"):
        record(policy=small_policies.CountingPolicy())


@pytest.mark.parametrize("text", ["64", "64x", "x16", "64 by 16", "-2x4"])
def test_something_that_is_not_a_geometry_is_refused(text):
    with pytest.raises(UsageError, match="SLOTSxSTEPS"):
        Geometry.parse(text)


@pytest.mark.parametrize("text", ["0x16", "7x16", "8x0"])
def test_a_geometry_without_halves_is_refused(text):
    with pytest.raises(UsageError, match="halves"):
        Geometry.parse(text)
