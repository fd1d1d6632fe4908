"""The row-permutation null: its exact mean, its shuffles, its p value."""

from itertools import permutations

import numpy as np
import pytest

from gapfloor.errors import UsageError
from gapfloor.representation import expected_cka, linear_cka, participation_ratio, permutation_null

pytestmark = pytest.mark.fast

SPECTRA = {
    "flat": np.ones(24),
    "one direction": np.r_[100.0, np.full(23, 0.1)],
    "power law": np.arange(1, 25) ** -1.0,
    "geometric": 0.7 ** np.arange(24),
    "wider than long": np.ones(300),
}


def with_spectrum(spectrum, n, seed):
    """Skewed features, since those of a ReLU are."""
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n, len(spectrum))) * spectrum


@pytest.mark.parametrize("one", SPECTRA)
@pytest.mark.parametrize("other", SPECTRA)
def test_the_permutation_mean_is_the_exact_one_to_monte_carlo_error(one, other):
    x, y = with_spectrum(SPECTRA[one], 120, 0), with_spectrum(SPECTRA[other], 120, 1)
    null = permutation_null(x, y, rng=np.random.default_rng(2), permutations=400)
    assert null.exact_mean == pytest.approx(expected_cka(participation_ratio(x), participation_ratio(y), 120))
    assert abs(null.mean - null.exact_mean) < 4 * null.sd / np.sqrt(400)


def test_over_all_permutations_the_mean_is_exact():
    """Every one of the 720 orders of six rows, each by `linear_cka` itself."""
    x, y = with_spectrum(np.array([3.0, 1.0]), 6, 3), with_spectrum(np.ones(4), 6, 4)
    values = [linear_cka(x, y[list(order)]) for order in permutations(range(6))]
    assert np.mean(values) == pytest.approx(
        expected_cka(participation_ratio(x), participation_ratio(y), 6), rel=1e-12
    )


def test_the_shuffles_are_those_of_the_generator_one_by_one():
    x, y = with_spectrum(np.ones(5), 50, 0), with_spectrum(np.ones(3), 50, 1)
    null = permutation_null(x, y, rng=np.random.default_rng(9), permutations=13)
    rng = np.random.default_rng(9)
    values = [linear_cka(x, y[rng.permutation(50)]) for _ in range(13)]
    assert null.mean == pytest.approx(np.mean(values), rel=1e-5)
    assert null.sd == pytest.approx(np.std(values, ddof=1), rel=1e-4)
    assert null.observed == linear_cka(x, y)
    assert null.z == pytest.approx((null.observed - null.mean) / null.sd)


def test_the_same_seed_gives_the_same_null_and_another_seed_another():
    x, y = with_spectrum(np.ones(5), 50, 0), with_spectrum(np.ones(3), 50, 1)
    first, again, other = (permutation_null(x, y, rng=np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert first == again
    assert first.mean != other.mean


def test_independent_sides_pass_for_related_as_often_as_the_level_says():
    rng = np.random.default_rng(0)
    found = [
        permutation_null(rng.normal(size=(25, 3)), rng.normal(size=(25, 4)), rng=rng, permutations=39).p_value
        for _ in range(600)
    ]
    # 40 possible values of p: p <= .05 with probability exactly .05; 600 trials give .05 +- .009.
    assert 0.023 < np.mean(np.array(found) <= 0.05) < 0.077


def test_related_sides_stand_far_above_it():
    x = with_spectrum(np.ones(5), 200, 0)
    null = permutation_null(x, x + 1.0 * with_spectrum(np.ones(5), 200, 1), rng=np.random.default_rng(0))
    assert null.z > 20
    assert null.p_value == pytest.approx(1 / 201)


def test_very_large_and_very_small_features_have_the_same_null():
    x, y = with_spectrum(np.ones(5), 50, 0), with_spectrum(np.ones(3), 50, 1)
    plain = permutation_null(x, y, rng=np.random.default_rng(0))
    scaled = permutation_null(x * 1e120, y * 1e-120, rng=np.random.default_rng(0))
    assert scaled.mean == pytest.approx(plain.mean, rel=1e-5)


def test_one_permutation_is_not_a_null():
    x = with_spectrum(np.ones(5), 50, 0)
    with pytest.raises(UsageError, match="at least 2"):
        permutation_null(x, x, rng=np.random.default_rng(0), permutations=1)
