"""Linear CKA: against independent computations, its invariances, and which rows may be paired."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group, pearsonr

from gapfloor.errors import UsageError
from gapfloor.representation import Features, linear_cka, participation_ratio
from gapfloor.representation.features import encode, hash_rows

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
        assert linear_cka(x, y).value == pytest.approx(0.2132417806180611, rel=1e-12)

    def test_one_column_a_side_gives_the_squared_correlation(self):
        x, y = related(3, d_x=1, d_y=1)
        assert linear_cka(x, y).value == pytest.approx(pearsonr(x[:, 0], y[:, 0]).statistic ** 2, rel=1e-12)

    @settings(max_examples=30, deadline=None)
    @given(SEEDS, st.integers(3, 30), st.integers(1, 60), st.integers(1, 60))
    def test_distances_alone_give_the_same_number(self, seed, n, d_x, d_y):
        """More columns than rows too, where the features are rotated into fewer columns first."""
        x, y = related(seed, n=n, d_x=d_x, d_y=d_y)
        assert linear_cka(x, y).value == pytest.approx(cka_from_distances(x, y), rel=1e-8)

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
        assert linear_cka(turned, y).value == pytest.approx(linear_cka(x, y).value, rel=1e-10)

    @settings(max_examples=30, deadline=None)
    @given(SEEDS, st.floats(-1e150, 1e150).filter(lambda scale: abs(scale) > 1e-150))
    def test_isotropic_scaling_and_shifts_do_not_change_it(self, seed, scale):
        x, y = related(seed)
        assert linear_cka(x * scale, y + 3).value == pytest.approx(linear_cka(x, y).value, rel=1e-9)

    @settings(max_examples=20, deadline=None)
    @given(SEEDS)
    def test_reordering_both_sides_alike_does_not_change_it_and_one_side_does(self, seed):
        x, y = related(seed)
        order = np.random.default_rng(seed).permutation(len(x))
        assert linear_cka(x[order], y[order]).value == pytest.approx(linear_cka(x, y).value, rel=1e-10)
        assert linear_cka(x[order], y).value < linear_cka(x, y).value

    def test_scaling_one_column_does_change_it(self):
        x, y = related(1)
        assert linear_cka(x * [100, 1, 1, 1, 1], y).value != pytest.approx(linear_cka(x, y).value, rel=1e-2)

    @settings(max_examples=20, deadline=None)
    @given(SEEDS)
    def test_it_is_symmetric_and_one_with_itself_and_never_above_one(self, seed):
        x, y = related(seed)
        assert linear_cka(x, y).value == pytest.approx(linear_cka(y, x).value, rel=1e-12)
        assert linear_cka(x, x).value == pytest.approx(1, rel=1e-12)
        assert 0 <= linear_cka(x, y).value <= 1 + 1e-12


class TestPairing:
    inputs = np.random.default_rng(0).integers(0, 255, (12, 4, 4, 3), dtype=np.uint8)

    def features(self, inputs, seed=0):
        weights = np.random.default_rng(seed).normal(size=(48, 6))
        return Features(inputs.reshape(len(inputs), -1) @ weights, hash_rows(inputs), f"encoder {seed}")

    def test_the_same_inputs_are_compared_and_the_result_says_that_it_was_checked(self):
        result = linear_cka(self.features(self.inputs), self.features(self.inputs, seed=1))
        assert (result.pairing, result.n) == ("checked", 12)

    def test_other_inputs_are_refused_with_the_row_and_the_reason(self):
        moved = self.inputs.copy()
        moved[[4, 5]] = moved[[5, 4]]
        with pytest.raises(
            UsageError, match=r"Row 4 of encoder 0 .* \(2 of 12 rows are\).*control='unpaired'"
        ):
            linear_cka(self.features(self.inputs), self.features(moved, seed=1))

    def test_a_single_pixel_makes_another_input(self):
        moved = self.inputs.copy()
        moved[7, 0, 0, 0] ^= 1
        with pytest.raises(UsageError, match="Row 7"):
            linear_cka(self.features(self.inputs), self.features(moved))

    def test_the_unpaired_control_is_computed_when_it_is_named(self):
        moved = self.inputs[::-1]
        result = linear_cka(self.features(self.inputs), self.features(moved, seed=1), control="unpaired")
        assert result.pairing == "unpaired"
        plain = linear_cka(self.features(self.inputs).values, self.features(moved, seed=1).values)
        assert result.value == plain.value

    def test_plain_arrays_are_taken_at_their_word(self):
        assert linear_cka(*related(0)).pairing == "as given"

    def test_a_side_without_hashes_cannot_vouch_for_the_other(self):
        features = self.features(self.inputs)
        with pytest.raises(UsageError, match="Only one side"):
            linear_cka(features, features.values)

    def test_taking_rows_takes_their_hashes(self):
        rows = np.array([3, 1])
        taken = self.features(self.inputs).take(rows)
        assert taken.row_hashes == hash_rows(self.inputs[rows])

    def test_encoding_knows_its_inputs_whatever_the_batch(self):
        class Policy:
            def features(self, observations):
                return observations.reshape(len(observations), -1)[:, :5].astype(np.float32)

        many = np.random.default_rng(1).integers(0, 255, (130, 4, 4, 3), dtype=np.uint8)
        encoded = encode(Policy(), many)
        assert np.array_equal(encoded.values, many.reshape(130, -1)[:, :5])
        assert encoded.row_hashes == hash_rows(many)


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

    def test_an_unknown_control_is_refused_with_the_known_one(self):
        with pytest.raises(UsageError, match="did you mean unpaired"):
            linear_cka(self.x, self.x, control="unpared")

    def test_hashes_that_do_not_fit_are_refused(self):
        with pytest.raises(UsageError, match="one hash per row"):
            Features(self.x, ("a", "b"))


def test_a_result_is_told_in_units_of_its_null():
    result = linear_cka(*related(2))
    assert result.expected == pytest.approx(np.sqrt(result.pr_x * result.pr_y) / 39)
    assert result.in_null_units == pytest.approx(result.value / result.expected)
