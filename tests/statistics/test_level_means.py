"""Errors over levels: what pairing removes, and what repeating an episode does not add."""

import numpy as np
import pytest
from scipy import stats

from gapfloor.errors import UsageError
from gapfloor.statistics.level_crossing import independent_difference, mean_by_level, pair_by_level

pytestmark = pytest.mark.fast


def test_one_episode_a_level_gives_the_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(2, 1, 30), rng.normal(1, 1, 30)
    found = pair_by_level(a, b, np.arange(30))
    expected = stats.ttest_rel(a, b)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_playing_a_deterministic_level_again_adds_no_certainty():
    values, levels = np.array([1.0, 4.0, 2.0, 7.0]), np.arange(4)
    once = mean_by_level(values, levels)
    five_times = mean_by_level(np.tile(values, 5), np.tile(levels, 5))
    assert five_times.se == pytest.approx(once.se)
    assert five_times.df == once.df == 3


def test_what_levels_do_to_both_cancels():
    rng = np.random.default_rng(1)
    levels = np.arange(50)
    hard = rng.normal(0, 10, 50)
    a, b = hard + 1 + rng.normal(0, 0.1, 50), hard + rng.normal(0, 0.1, 50)
    paired = pair_by_level(a, b, levels)
    unpaired = independent_difference(mean_by_level(a, levels), mean_by_level(b, levels))
    assert paired.value == pytest.approx(unpaired.value)
    assert paired.se < unpaired.se / 20


def test_a_gap_of_single_episode_levels_is_welchs():
    rng = np.random.default_rng(2)
    a, b = rng.normal(2, 1, 30), rng.normal(1, 3, 20)
    found = independent_difference(mean_by_level(a, np.arange(30)), mean_by_level(b, np.arange(20)))
    expected = stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.df == pytest.approx(expected.df)


def test_one_level_has_no_error():
    found = mean_by_level(np.array([1.0, 2.0]), np.array([7, 7]))
    assert found.value == 1.5
    assert np.isnan([found.se, found.p, *found.interval]).all()


def test_unequal_schedules_are_refused():
    with pytest.raises(UsageError, match="same episodes, but have 2, 3 and 3"):
        pair_by_level(np.zeros(2), np.zeros(3), np.arange(3))
