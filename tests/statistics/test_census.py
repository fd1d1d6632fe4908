"""What a census leaves uncertain, against simulation and closed form."""

import numpy as np
import pytest

from gapfloor.statistics.level_crossing import by_level, within_level_sample

pytestmark = pytest.mark.fast


def census_sem(returns, levels):
    """The error that tests and bootstraps for independent episodes take from the sample of a census."""
    sample = within_level_sample(returns, levels)
    return np.sqrt(sample.var(ddof=1) / sample.size)


def play(rng, *, levels=40, repeats=3, between=5.0, within=1.0):
    means = between * np.random.default_rng(7).standard_normal(levels)  # these levels, always the same
    returns = np.repeat(means, repeats) + within * rng.standard_normal(levels * repeats)
    return returns, np.repeat(np.arange(levels), repeats)


def test_the_error_of_a_census_is_the_spread_of_its_mean_when_the_same_levels_are_played_again():
    rng = np.random.default_rng(0)
    means, errors = zip(
        *[(r.mean(), census_sem(r, lv)) for r, lv in (play(rng) for _ in range(2000))], strict=True
    )
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.05)
    assert np.mean(errors) == pytest.approx(1 / np.sqrt(120), rel=0.02)


def test_the_within_level_sample_keeps_the_mean_and_has_only_the_spread_within_levels():
    returns, levels = play(np.random.default_rng(1))
    sample = within_level_sample(returns, levels)
    assert sample.mean() == pytest.approx(returns.mean())
    within = returns.reshape(40, 3).var(axis=1, ddof=1).mean()
    assert sample.var(ddof=1) == pytest.approx(within)
    assert sample.var() < returns.var() / 10


def test_levels_played_once_say_nothing_about_chance_and_are_left_as_they_are():
    returns = np.array([1.0, 5.0, 9.0])
    assert within_level_sample(returns, [3, 4, 5]).tolist() == [1.0, 5.0, 9.0]


def test_copies_of_a_deterministic_episode_are_one_level():
    returns, levels = np.repeat([2.0, 4.0], 10), np.repeat([8, 9], 10)
    assert by_level(returns, levels).means.tolist() == [2.0, 4.0]
    assert census_sem(returns, levels) == 0.0
