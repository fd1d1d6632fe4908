"""Distributions over any action space: samples, greedy actions and entropies, against torch and against counting."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import distributions as theirs

from gapfloor.actions.distributions import Categoricals, Deterministic, Gaussian, SquashedGaussian
from gapfloor.actions.spaces import Box, several
from gapfloor.errors import PolicyError

N = 40_000
LOW, HIGH = np.array([-2.0, 0.0]), np.array([2.0, 1.0])
BOX = Box((-2.0, 0.0), (2.0, 1.0))


def uniforms(columns: int) -> np.ndarray:
    return np.random.default_rng(0).random((N, columns))


def rows(*values: float) -> np.ndarray:
    return np.tile(np.array(values), (N, 1))


def test_a_gaussian_is_clipped_and_its_mode_is_its_mean() -> None:
    made = Gaussian(rows(0.5, 3.0), rows(1.0, 0.1))
    sample = np.asarray(made.sample(uniforms(2), BOX))
    assert (sample >= LOW).all()
    assert (sample <= HIGH).all()
    assert made.mode(BOX)[0].tolist() == [0.5, 1.0]
    assert made.mode_name == "mode"
    normal = theirs.Normal(torch.tensor([0.5, 3.0]), torch.tensor([1.0, 0.1]))
    assert made.entropy(BOX)[0] == pytest.approx(float(normal.entropy().sum()), abs=1e-6)


def test_a_squashed_gaussian_names_its_greedy_action_for_what_it_is() -> None:
    made = SquashedGaussian(rows(0.7, -0.2), rows(0.5, 0.9))
    sample = np.asarray(made.sample(uniforms(2), BOX))
    assert made.mode_name == "tanh of the mean"
    greedy = np.asarray(made.mode(BOX))[0]
    assert np.median(sample, axis=0) == pytest.approx(greedy, abs=0.02)  # the median, and not the mean
    assert abs(sample.mean(axis=0) - greedy).max() > 0.02
    counts = [np.histogram(sample[:, i], bins=100, range=(LOW[i], HIGH[i]), density=True) for i in (0, 1)]
    counted = sum(-(d[d > 0] * np.log(d[d > 0])).sum() * (e[1] - e[0]) for d, e in counts)
    assert made.entropy(BOX)[0] == pytest.approx(counted, abs=0.02)


def test_parameters_from_which_nothing_can_be_drawn_are_refused() -> None:
    good = np.zeros((2, 2))
    with pytest.raises(PolicyError, match="not finite"):
        Categoricals((np.full((2, 3), -np.inf),))
    with pytest.raises(PolicyError, match="Dimension 1 has 3 rows"):
        Categoricals((good, np.zeros((3, 2))))
    with pytest.raises(PolicyError, match=r"the standard deviation .* above 0"):
        Gaussian(good, good)
    with pytest.raises(PolicyError, match="deviation in the shape"):
        Gaussian(good + 1, np.ones((2, 3)))
    with pytest.raises(PolicyError, match="one row per observation"):
        SquashedGaussian(np.zeros(3), np.ones(3))


def test_a_deterministic_policy_has_nothing_to_draw_from() -> None:
    made = Deterministic(rows(0.5, 3.0))
    assert np.array_equal(made.sample(uniforms(2), BOX), made.mode(BOX))
    assert made.mode(BOX)[0].tolist() == [0.5, 1.0]
    assert made.entropy(BOX) is None
    assert made.is_deterministic


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_a_temperature_raises_the_density_to_a_power(temperature: float) -> None:
    points = np.linspace(0.02, 0.98, 200)
    changed = Gaussian(rows(0.3, 0.3), rows(0.5, 0.5)).tempered(temperature).parameters[0]
    after = theirs.Normal(changed[0], changed[2]).log_prob(torch.tensor(points))
    before = theirs.Normal(0.3, 0.5).log_prob(torch.tensor(points)) / temperature
    difference = (after - before).numpy()
    assert difference == pytest.approx(difference[0], abs=1e-6)  # the same up to scale


def test_a_distribution_over_another_space_is_refused_with_both_named() -> None:
    with pytest.raises(PolicyError, match=r"acts with 2 real numbers, .* are Box\(-1 to 1, 1 dimension\)"):
        Gaussian(rows(0.0, 0.0), rows(1.0, 1.0)).check(Box((-1.0,), (1.0,)), name="mine")
    with pytest.raises(PolicyError, match=r"chooses in MultiDiscrete\(3, 2\), .* MultiDiscrete\(4, 4\)"):
        Categoricals((rows(0.0, 1.0, 2.0), rows(2.0, 0.0))).joint(several([4, 4]), name="mine")
