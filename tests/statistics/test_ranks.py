"""Kendall's tau with its permutation p, against scipy and against its own limits."""

import math

import numpy as np
import pytest
from scipy import stats

from gapfloor.errors import UsageError
from gapfloor.statistics.ranks import rank_correlation

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [4, 6, 8])
def test_without_ties_it_is_scipys_exact_test(n, seed):
    rng = np.random.default_rng([n, seed])
    x, y = rng.normal(size=n), rng.normal(size=n)
    found = rank_correlation(x, y)
    expected = stats.kendalltau(x, y, method="exact")
    assert found.tau == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.is_exact


def test_ties_count_as_neither_and_tau_b_is_scipys():
    x, y = [0, 1, 2, 3, 4], [1.0, 1.0, 2.0, 2.0, 0.5]
    assert rank_correlation(x, y).tau == pytest.approx(stats.kendalltau(x, y).statistic)


def test_the_smallest_p_is_reached_by_a_monotone_grid():
    found = rank_correlation([0, 0.1, 0.5, 0.7, 0.9, 1], [1, 2, 3, 4, 5, 6])
    assert (found.tau, found.rises_always, found.n_rises) == (1.0, True, 5)
    assert found.p == found.smallest == 2 / math.factorial(6)


def test_a_tie_at_one_step_is_not_a_rise():
    found = rank_correlation([0, 1, 2], [1.0, 1.0, 2.0])
    assert (found.rises_always, found.n_rises) == (False, 1)


def test_a_constant_has_no_correlation():
    found = rank_correlation([0, 1, 2], [1.0, 1.0, 1.0])
    assert np.isnan([found.tau, found.p]).all()


def test_many_points_are_permuted_at_random_and_say_so():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=12), rng.normal(size=12)
    found = rank_correlation(x, y)
    assert not found.is_exact
    assert found.p == pytest.approx(stats.kendalltau(x, y, method="exact").pvalue, abs=0.01)


def test_one_point_is_refused():
    with pytest.raises(UsageError, match="two or more paired values"):
        rank_correlation([1], [1])
