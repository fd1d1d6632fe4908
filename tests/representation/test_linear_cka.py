"""Linear CKA: against independent computations, and its invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group, pearsonr

from gapfloor.errors import UsageError
from gapfloor.representation import encode, linear_cka, participation_ratio

pytestmark = pytest.mark.fast

SEEDS = st.integers(0, 2**32 - 1)


def related(seed, n=40, d_x=5, d_y=7):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d_x)) * rng.gamma(1.0, size=d_x)
    y = x @ rng.normal(size=(d_x, d_y)) + rng.normal(size=(n, d_y))
    return x, y + rng.normal(size=d_y) * 10


def cka_from_distances(x, y):
    """CKA without a single product of features: double-centred squared distances are -2 times the Gram matrix."""
    centred = []
    for side in (x, y):
        squares = squareform(pdist(side, "sqeuclidean"))
        centred.append(squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())
    one, other = centred
    return (one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum())


class TestAgainstOthers:
    def test_hoggorm_s_rv_coefficient_is_the_same_number(self):
        # hoggorm 0.13.3: RVcoeff([x - x.mean(0), y - y.mean(0)])[0, 1]
        rng = np.random.RandomState(7)
        x = rng.normal(size=(40, 5))
        y = np.hstack([x[:, :2] + rng.normal(size=(40, 2)), rng.normal(size=(40, 3))]) ** 3
        assert linear_cka(x, y) == pytest.approx(0.2132417806180611, rel=1e-12)

    def test_one_column_a_side_gives_the_squared_correlation(self):
        x, y = related(3, d_x=1, d_y=1)
        assert linear_cka(x, y) == pytest.approx(pearsonr(x[:, 0], y[:, 0]).statistic ** 2, rel=1e-12)

    @settings(max_examples=30, deadline=None)
    @given(SEEDS, st.integers(3, 30), st.integers(1, 60), st.integers(1, 60))
    def test_distances_alone_give_the_same_number(self, seed, n, d_x, d_y):
        """More columns than rows too, where the features are rotated into fewer columns first."""
        x, y = related(seed, n=n, d_x=d_x, d_y=d_y)
        assert linear_cka(x, y) == pytest.approx(cka_from_distances(x, y), rel=1e-8)

    def test_the_participation_ratio_is_that_of_the_covariance_s_eigenvalues(self):
        x, _ = related(5)
        spectrum = np.linalg.eigvalsh(np.cov(x.T))
        assert participation_ratio(x) == pytest.approx(spectrum.sum() ** 2 / (spectrum**2).sum(), rel=1e-12)


class TestInvariances:
    @settings(max_examples=30, deadline=None)
    @given(SEEDS)
    def test_rotations_do_not_change_it(self, seed):
        x, y = related(seed)
        turned = x @ ortho_group.rvs(x.shape[1], random_state=seed)
        assert linear_cka(turned, y) == pytest.approx(linear_cka(x, y), rel=1e-10)

    @settings(max_examples=30, deadline=None)
    @given(SEEDS, st.floats(-1e150, 1e150).filter(lambda scale: abs(scale) > 1e-150))
    def test_isotropic_scaling_and_shifts_do_not_change_it(self, seed, scale):
        x, y = related(seed)
        assert linear_cka(x * scale, y + 3) == pytest.approx(linear_cka(x, y), rel=1e-9)

    @settings(max_examples=20, deadline=None)
    @given(SEEDS)
    def test_reordering_both_sides_alike_does_not_change_it_and_one_side_does(self, seed):
        x, y = related(seed)
        order = np.random.default_rng(seed).permutation(len(x))
        assert linear_cka(x[order], y[order]) == pytest.approx(linear_cka(x, y), rel=1e-10)
        assert linear_cka(x[order], y) < linear_cka(x, y)

    def test_scaling_one_column_does_change_it(self):
        x, y = related(1)
        assert linear_cka(x * [100, 1, 1, 1, 1], y) != pytest.approx(linear_cka(x, y), rel=1e-2)

    @settings(max_examples=20, deadline=None)
    @given(SEEDS)
    def test_it_is_symmetric_and_one_with_itself_and_never_above_one(self, seed):
        x, y = related(seed)
        assert linear_cka(x, y) == pytest.approx(linear_cka(y, x), rel=1e-12)
        assert linear_cka(x, x) == pytest.approx(1, rel=1e-12)
        assert 0 <= linear_cka(x, y) <= 1 + 1e-12


def test_encoding_gives_the_same_rows_whatever_the_number_of_rows():
    class Policy:
        def features(self, observations):
            return observations.reshape(len(observations), -1)[:, :5].astype(np.float32)

    many = np.random.default_rng(1).integers(0, 255, (130, 4, 4, 3), dtype=np.uint8)
    assert np.array_equal(encode(Policy(), many), many.reshape(130, -1)[:, :5])


class TestRefusals:
    x = np.random.default_rng(0).normal(size=(6, 3))

    @pytest.mark.parametrize(
        ("x", "y", "message"),
        [
            (x, x[:5], "these have 6 and 5"),
            (x[:2], x[:2], "has 2 rows"),
            (x[0], x[0], "needs a matrix"),
            (x, x.astype(str), "needs a matrix"),
            (x, np.where(np.arange(18).reshape(6, 3) == 7, np.nan, x), r"not finite \(row 2\)"),
            (np.ones((6, 3)), x, "All rows of `x` are equal"),
            (np.zeros((6, 3)), x, "All rows of `x` are equal"),
            (x[:, :0], x, "All rows of `x` are equal"),
        ],
    )
    def test_what_has_no_cka_is_refused(self, x, y, message):
        with pytest.raises(UsageError, match=message):
            linear_cka(x, y)
