"""The shape of run values: scipy's skewness and kurtosis, their null distributions, and which calls they allow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gapfloor.statistics.run_shape import (
    _EXPONENTIAL,
    FamilyShape,
    are_in_doubt,
    family_shape,
    groups_score,
    null_variance,
    sample_skewness,
)

pytestmark = pytest.mark.fast

NORMAL = stats.norm.ppf((np.arange(12) + 0.5) / 12)


def test_skewness_is_scipys_and_the_table_is_what_its_call_gives():
    values = np.random.default_rng(0).exponential(size=(5, 7))
    assert sample_skewness(values) == pytest.approx(stats.skew(values, axis=1))
    assert family_shape(values).skewness == pytest.approx(stats.skew(values, axis=1, bias=False).mean())
    for n in (3, 6, 12):
        simulated = stats.skew(np.random.default_rng(1).exponential(size=(40_000, n)), axis=1).mean()
        assert _EXPONENTIAL[n] == pytest.approx(simulated, abs=0.02)
    normal = stats.skew(np.random.default_rng(1).standard_normal((40_000, 6)), axis=1)
    assert null_variance(6) == pytest.approx(normal.var(), rel=0.03)


@pytest.mark.parametrize("n", [3, 4, 6, 9])
def test_the_score_of_two_groups_is_standardised_for_normal_values(n):
    found = groups_score(np.random.default_rng(n).standard_normal((40_000, n)))
    assert (found.mean(), found.std()) == pytest.approx((0.0, 1.0), abs=0.02)


def test_right_skewed_families_doubt_below_and_not_above():
    rng = np.random.default_rng(0)
    skewed, symmetric = family_shape([rng.lognormal(size=12) for _ in range(8)]), family_shape([NORMAL] * 8)
    assert skewed.doubt(-1, NORMAL) == "the runs may be right-skewed"
    assert [skewed.doubt(1, NORMAL), symmetric.doubt(-1, NORMAL), symmetric.doubt(1, NORMAL)] == [""] * 3
    left = family_shape([-rng.lognormal(size=12) for _ in range(8)])
    assert left.doubt(1, NORMAL) == "the runs may be left-skewed"


def test_one_skewed_game_in_a_symmetric_family_is_in_doubt_alone():
    skewed = np.exp(NORMAL)
    family = family_shape([NORMAL] * 7 + [skewed])
    assert family.doubt(-1, skewed)
    assert not family.doubt(-1, NORMAL)


def test_two_groups_of_runs_forbid_both_calls():
    family = family_shape([[0.0, 0.1, 5.0], [0.0, 4.9, 5.0]] * 4)
    assert family.doubt(1, [4.9, 5.0, 5.1]) == family.doubt(-1, [0.0, 0.1, 0.2]) == "the runs form two groups"
    assert family_shape([[0.0, 0.1, 0.2, 5.0, 5.1, 5.2]] * 8).has_two_groups
    assert not family_shape([[-1.3, -0.6, -0.2, 0.2, 0.6, 1.3]] * 8).has_two_groups


def test_a_family_that_says_nothing_about_its_shape_doubts_below():
    assert family_shape([[1.0, 2.0]]) == FamilyShape()
    assert FamilyShape().doubt(-1, [1.0, 2.0])
    assert not FamilyShape().doubt(1, [1.0, 2.0])


def test_many_families_at_once_are_judged_as_one_by_one():
    values = np.random.default_rng(2).gamma(2.0, size=(40, 8, 4))
    above, below = are_in_doubt(values)
    for games, no_above, no_below in zip(values, above, below, strict=True):
        shape = family_shape(games)
        assert [bool(shape.doubt(1, runs)) for runs in games] == no_above.tolist()
        assert [bool(shape.doubt(-1, runs)) for runs in games] == no_below.tolist()


def test_the_shape_does_not_depend_on_scale_and_order():
    values = np.random.default_rng(3).gamma(2.0, size=(8, 6))
    expected = family_shape(values)
    for scale in (1e-40, 1e45):
        assert family_shape(scale * values[::-1, ::-1]).skewness == pytest.approx(expected.skewness)
